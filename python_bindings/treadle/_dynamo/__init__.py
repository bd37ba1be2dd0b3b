"""The part of PyTorch's compiler that programs address by name: programs run as written, or by what
a backend makes of their graph.

See treadle.compile and treadle.compiler.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from typing import Any, Callable, Optional

from treadle import _names
from treadle._as_written.dynamo import (  # noqa: F401
    allow_in_graph,
    assume_constant_result,
    disable,
    disallow_in_graph,
    forbid_in_graph,
    graph_break,
    is_compiling,
    mark_dynamic,
    mark_static,
    mark_static_address,
    maybe_mark_dynamic,
    nonstrict_trace,
    run,
)
from treadle._dynamo import config, exc
from treadle._dynamo.backends import check_backend, list_backends, register_backend
from treadle._dynamo.eval_frame import OptimizedModule, optimized


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


def reset() -> None:
    """Forget what backends made of graphs, so that they are asked again."""
    if "treadle._dynamo._capture" in sys.modules:
        sys.modules["treadle._dynamo._capture"].forget()


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
