"""The functions that tell a compiler about functions and tensors. Nothing is compiled: a function
comes back as it is, and a fact about a tensor is dropped.

treadle._dynamo and treadle.compiler have these names.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Optional, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def allow_in_graph(fn: F) -> F:
    """The function, as it is. (A compiler would not look into it.)"""
    return fn


def disallow_in_graph(fn: F) -> F:
    """The function, as it is. (A compiler would leave it out.)"""
    return fn


forbid_in_graph = assume_constant_result = nonstrict_trace = disallow_in_graph


def disable(
    fn: Optional[Callable[..., Any]] = None,
    recursive: bool = True,
    *,
    reason: Optional[str] = None,
    wrapping: bool = True,
) -> Any:
    """The function, as it is; also `@disable()` and `@disable(recursive=False)`."""
    return (lambda function: function) if fn is None else fn


def run(fn: F) -> F:
    """The function, as it is."""
    return fn


def graph_break(msg: str = "") -> None:
    """A place at which a compiler would stop."""


def is_compiling() -> bool:
    """Whether the code runs inside a compiler: never."""
    return False


def mark_dynamic(t: Any, index: Any, *args: Any, **kwargs: Any) -> None:
    """A size that a compiler should expect to change."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """A size that a compiler may expect to change."""


def mark_static(t: Any, index: Any = None) -> None:
    """A size that a compiler may take for fixed."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """A tensor that a compiler may expect in the same memory."""
