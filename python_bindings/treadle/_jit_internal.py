"""Marks that programs set for TorchScript's compiler; functions stay as they are."""

from __future__ import annotations

from typing import Any, Callable, TypeVar

from treadle.jit import Final as Final
from treadle.jit import export as export
from treadle.jit import ignore as ignore
from treadle.jit import is_scripting as is_scripting
from treadle.jit import unused as unused

F = TypeVar("F", bound=Callable[..., Any])


def _copy_to_script_wrapper(fn: F) -> F:
    """The function, which the compiler would take along with its module."""
    return fn
