"""Marks that programs set for TorchScript's compiler, and questions about them; functions run as
they are."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
from typing import Any, Callable, TypeVar

from treadle.jit import Final as Final
from treadle.jit import export as export
from treadle.jit import ignore as ignore
from treadle.jit import is_scripting as is_scripting
from treadle.jit import unused as unused
from treadle.jit._marks import FunctionModifiers, mark

F = TypeVar("F", bound=Callable[..., Any])


def _copy_to_script_wrapper(fn: F) -> F:
    """The function, with a mark: the compiler would take it along with its module."""
    return mark(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


def get_torchscript_modifier(fn: Any) -> Any:
    """The mark of a function or a method: FunctionModifiers.DEFAULT where there is none, None for
    what is no function."""
    if not callable(fn):
        return None
    return getattr(getattr(fn, "__func__", fn), "_torchscript_modifier", FunctionModifiers.DEFAULT)


def should_drop(fn: Any) -> bool:
    """Whether the compiler leaves a function out: unused() marked it."""
    return get_torchscript_modifier(fn) == FunctionModifiers.UNUSED


def is_ignored_fn(fn: Any) -> bool:
    """Whether the compiler does not look into a function: unused() or ignore() marked it."""
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers.IGNORE)


def is_static_fn(cls: type, fn: str) -> bool:
    """Whether a class has a static method of that name."""
    return isinstance(inspect.getattr_static(cls, fn, default=None), staticmethod)


def get_static_fn(cls: type, fn: str) -> Any:
    """The function of a static method."""
    return inspect.getattr_static(cls, fn).__func__
