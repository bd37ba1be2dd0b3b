"""treadle.compile: takes what PyTorch's takes, and runs the program as it is written, or by what
a function given as backend makes of its graph."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Union

from treadle import _as_written
from treadle._dynamo.backends import check_backend
from treadle._dynamo.eval_frame import optimized

_MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


_backend: Union[str, Callable[..., Any]] = "inductor"


def get_default_backend() -> Union[str, Callable[..., Any]]:
    """The backend of `compile` where none is given: the name "inductor" at first."""
    return _backend


def set_default_backend(backend: Union[str, Callable[..., Any], None]) -> None:
    """Set the backend of `compile` where none is given; None sets that of the beginning.
    InvalidBackend for a name that is not known."""
    global _backend
    check_backend(backend)
    _backend = "inductor" if backend is None else backend


def compile(  # noqa: A001
    model: Optional[Callable[..., Any]] = None,
    *,
    fullgraph: bool = False,
    dynamic: Optional[bool] = None,
    backend: Union[str, Callable[..., Any], None] = None,
    mode: Optional[str] = None,
    options: Optional[Dict[str, Any]] = None,
    disable: bool = False,
    name: Optional[str] = None,
    recompile_limit: Optional[int] = None,
    isolate_recompiles: bool = False,
    dynamic_shapes: Any = None,
) -> Any:
    """A module or function that computes what the given one does; also `@compile` and
    `@compile(...)`.

    A function given as `backend`, or registered by `_dynamo.register_backend`, is called with the
    program as an fx.GraphModule and a list of example inputs, at the first call of the result and
    again for inputs of other shapes; it returns a function of such inputs, which is then run. A
    program that one graph cannot hold runs as it is written, or with `fullgraph=True` raises
    Unsupported. None is what `compiler.set_default_backend` set. With a name of a compiler nothing
    is compiled, which the first call in a process warns of.

    A module comes back in a wrapper that holds it as `_orig_mod`, and whose state_dict() has keys
    that begin so. `dynamic` and what follows `disable` are kept for programs, and change nothing.
    RuntimeError for a mode or a backend that is not known.
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
            name=name,
            recompile_limit=recompile_limit,
            isolate_recompiles=isolate_recompiles,
            dynamic_shapes=dynamic_shapes,
        )
    if not callable(model):
        kind = type(model).__name__
        raise AssertionError(f"compile: expected a module or a function, got {kind}")
    if mode is not None and options is not None:
        raise RuntimeError("compile: expected mode or options, got both")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"compile: expected mode to be one of {', '.join(_MODES)}, got {mode}")
    function = check_backend(_backend if backend is None else backend)
    if disable:
        return model
    if function is not None:
        return optimized(model, (function, fullgraph))
    _as_written.warn("compile", "; fullgraph=True finds no breaks" if fullgraph else "")
    return optimized(model)
