"""Marks that programs set for TorchScript's compiler, and questions about them; functions run as
they are."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
from typing import Any, Callable, List, TypeVar, Union
from typing import Final as Final

F = TypeVar("F", bound=Callable[..., Any])


class FunctionModifiers:
    """The marks of functions: the values of their `_torchscript_modifier`."""

    UNUSED = "unused"
    IGNORE = "ignore"
    EXPORT = "export"
    DEFAULT = "default"
    COPY_TO_SCRIPT_WRAPPER = "copy to script wrapper"


def mark(fn: Any, modifier: str) -> Any:
    """The function with a mark, where it can be set."""
    target: Any = fn.fget if isinstance(fn, property) else fn
    try:
        target._torchscript_modifier = modifier
    except (AttributeError, TypeError):  # what takes no attributes
        pass
    return fn


def is_scripting() -> bool:
    """Whether the code runs compiled: never."""
    return False


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """`@jit.ignore` or `@jit.ignore(drop=True)`: the method, as it is, with a mark."""
    if callable(drop):
        return mark(drop, FunctionModifiers.IGNORE)
    kind = FunctionModifiers.UNUSED if drop else FunctionModifiers.IGNORE
    return lambda fn: mark(fn, kind)


def unused(fn: F) -> F:
    """The method, as it is, with a mark. (A compiler would leave it out.)"""
    return mark(fn, FunctionModifiers.UNUSED)


def export(fn: F) -> F:
    """The method, as it is, with a mark. (A compiler would keep it.)"""
    return mark(fn, FunctionModifiers.EXPORT)


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


class _BroadcastingList:
    """A list of a fixed length, or one value in place of equal ones."""

    def __getitem__(self, kind: Any) -> Any:
        return Union[kind, List[kind]]


BroadcastingList1 = _BroadcastingList()
BroadcastingList2 = _BroadcastingList()
BroadcastingList3 = _BroadcastingList()
