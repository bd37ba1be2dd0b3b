"""make_fx: the graph of a function, made while it runs on example values.

    traced = make_fx(function)(x, y)     # a GraphModule

Branches and loops go the way that the examples take, and their sizes are fixed.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional

from treadle.fx._record import record
from treadle.fx.graph_module import GraphModule


def get_proxy_mode() -> Optional[Any]:
    """The recorder that is at work on this thread; None outside make_fx()."""
    from treadle.fx import _record

    return _record.current()


def is_in_torch_dispatch_mode() -> bool:
    """Whether a mode over operators is open: none can be."""
    return False


def make_fx(
    f: Callable,
    decomposition_table: Any = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    **settings: Any,
) -> Callable[..., GraphModule]:
    """A function that takes example values and returns the GraphModule of `f`: the functions of the
    library that it called. AssertionError for a `tracing_mode` that is not real, fake or symbolic;
    sizes are fixed in each of them. NotImplementedError for a decomposition table."""
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(
            f"make_fx: expected tracing_mode real, fake or symbolic, got {tracing_mode}"
        )
    if decomposition_table:
        raise NotImplementedError(
            "make_fx: expected no decomposition_table; functions are recorded as they are called"
        )

    @functools.wraps(f)
    def traced(*args: Any) -> GraphModule:
        return record(f, args).as_function()

    return traced


__all__ = ["get_proxy_mode", "make_fx"]
