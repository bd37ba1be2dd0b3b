"""The part of PyTorch's compiler that programs address by name: programs run as written, or by what
a backend makes of their graph.

See treadle.compile and treadle.compiler.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from typing import Any, Callable, Optional, TypeVar

from treadle import _names
from treadle._dynamo import config, exc
from treadle._dynamo.backends import check_backend, list_backends, register_backend
from treadle._dynamo.eval_frame import OptimizedModule, optimized

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


def optimize(
    backend: Any = "inductor",
    *,
    nopython: bool = False,
    guard_export_fn: Any = None,
    guard_fail_fn: Any = None,
    disable: bool = False,
    dynamic: Optional[bool] = None,
) -> Callable[[Any], Any]:
    """A decorator: an older form of treadle.compile."""
    function = check_backend(backend)
    if disable:
        return lambda model: model
    how = None if function is None else (function, nopython)
    return lambda model: optimized(model, how)


def graph_break(msg: str = "") -> None:
    """A place at which a compiler would stop."""


def is_compiling() -> bool:
    """Whether the code runs inside a compiler: never."""
    return False


def reset() -> None:
    """Forget what backends made of graphs, so that they are asked again."""
    if "treadle._dynamo._capture" in sys.modules:
        sys.modules["treadle._dynamo._capture"].forget()


def mark_dynamic(t: Any, index: Any, *args: Any, **kwargs: Any) -> None:
    """A size that a compiler should expect to change."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """A size that a compiler may expect to change."""


def mark_static(t: Any, index: Any = None) -> None:
    """A size that a compiler may take for fixed."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """A tensor that a compiler may expect in the same memory."""


__getattr__ = _names.attributes_of(__name__)

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "exc",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "optimize",
    "register_backend",
    "reset",
    "run",
]
