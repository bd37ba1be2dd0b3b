"""treadle.compile: takes what PyTorch's takes, and runs the program as it is written."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Union

from treadle import _as_written
from treadle._dynamo.backends import check_backend
from treadle._dynamo.eval_frame import optimized

_MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def compile(  # noqa: A001
    model: Optional[Callable[..., Any]] = None,
    *,
    fullgraph: bool = False,
    dynamic: Optional[bool] = None,
    backend: Union[str, Callable[..., Any]] = "inductor",
    mode: Optional[str] = None,
    options: Optional[Dict[str, Any]] = None,
    disable: bool = False,
) -> Any:
    """A module or function that computes what the given one does; also `@compile` and
    `@compile(...)`. Nothing is compiled, which the first call in a process warns of: the arguments
    are checked and have no effect, and a function given as `backend` is not called, as there are no
    graphs to give to it.

    A module comes back in a wrapper that holds it as `_orig_mod`, and whose state_dict() has keys
    that begin so. RuntimeError for a mode or a backend that is not known.
    """
    if model is None:
        return lambda function: compile(
            function,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if not callable(model):
        kind = type(model).__name__
        raise AssertionError(f"compile: expected a module or a function, got {kind}")
    if mode is not None and options is not None:
        raise RuntimeError("compile: expected mode or options, got both")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"compile: expected mode to be one of {', '.join(_MODES)}, got {mode}")
    check_backend(backend)
    if disable:
        return model
    details = ""
    if callable(backend):
        details = f"; {getattr(backend, '__name__', type(backend).__name__)} is not called"
    elif fullgraph:
        details = "; fullgraph=True finds no breaks"
    _as_written.warn("compile", details)
    return optimized(model)
