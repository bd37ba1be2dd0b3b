"""TorchScript's names, on programs that run as they are written.

    fast = treadle.jit.script(model)         # the model itself
    traced = treadle.jit.trace(model, x)     # the same, after one run on x

Elsewhere these compile a program to a form of its own. Here nothing is compiled: what comes back is
what was given, so results, parameters and control flow are those of the program.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Final, Iterator, NamedTuple, Optional, Tuple, TypeVar

from treadle import _as_written, _names, nn
from treadle._as_written.torchscript import (
    enable_onednn_fusion,
    fuser,
    onednn_fusion_enabled,
    optimized_execution,
    set_fusion_strategy,
    strict_fusion,
)
from treadle._jit_internal import export as export
from treadle._jit_internal import ignore as ignore
from treadle._jit_internal import is_scripting as is_scripting
from treadle._jit_internal import unused as unused
from treadle.functional import is_tensor
from treadle.futures import Future
from treadle.jit._files import load, save
from treadle.jit._modules import (
    CompilationUnit,
    Error,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    script_method,
)
from treadle.jit._types import isinstance
from treadle.nn.parameter import is_lazy

T = TypeVar("T")

_NO_FORM = ", and what comes back is what was given, without save(), code and graph"
F = TypeVar("F", bound=Callable[..., Any])

_is_tracing = False


class Attribute(NamedTuple):
    """A value and the type that TorchScript would give it."""

    value: Any
    type: Any


def is_tracing() -> bool:
    """Whether the code runs inside trace()."""
    return _is_tracing


def annotate(the_type: Any, the_value: T) -> T:
    """The value; the type is for a compiler."""
    return the_value


def script(
    obj: T,
    optimize: Any = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> T:
    """A module, function or class, as it is; the first call in a process warns of that.
    RuntimeError for a module some of whose parameters or buffers are uninitialized."""
    _as_written.warn("jit.script", _NO_FORM)
    if isinstance(obj, nn.Module):
        held = (*obj.named_parameters(), *obj.named_buffers())  # type: ignore[attr-defined]
        lazy = [name for name, value in held if is_lazy(value)]
        if lazy:
            raise RuntimeError(
                "jit.script: expected a module whose parameters have their shapes, got "
                f"{type(obj).__name__} with uninitialized {', '.join(lazy)}; run a forward pass "
                "first"
            )
        _as_written.mark_scripted(obj)
    return obj


def script_if_tracing(fn: F) -> F:
    """The function, as it is: control flow is kept inside trace() as well."""
    return fn


_script_if_tracing = script_if_tracing


def trace(
    func: F,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: Optional[Dict[str, Any]] = None,
    _store_inputs: bool = True,
) -> F:
    """A module or function, as it is, after it was called once with the example inputs: a tensor,
    or a tuple of arguments. Errors for these are raised here. RuntimeError without inputs.
    """
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("trace: expected example_inputs or example_kwarg_inputs, got neither")
    _as_written.warn("jit.trace", _NO_FORM + "; both ways of an `if` stay")
    _call_traced(func, example_inputs, example_kwarg_inputs)
    if isinstance(func, nn.Module):
        _as_written.mark_scripted(func)
    return func


def trace_module(mod: Any, inputs: Dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """A module, as it is, after each method that `inputs` names was called once with its inputs."""
    if not isinstance(inputs, dict):
        raise AttributeError("trace_module: expected inputs to be a dictionary of (method, inputs)")
    for name, example in inputs.items():
        _call_traced(mod if name == "forward" else getattr(mod, name), example, None)
    return mod


@contextlib.contextmanager
def _tracing() -> Iterator[None]:
    """A block in which is_tracing() is True."""
    global _is_tracing
    before, _is_tracing = _is_tracing, True
    try:
        yield
    finally:
        _is_tracing = before


def _call_traced(
    function: Callable[..., Any], inputs: Any, keywords: Optional[Dict[str, Any]]
) -> None:
    is_one = is_tensor(inputs) or type(inputs) is dict
    arguments: Tuple[Any, ...] = () if inputs is None else (inputs,) if is_one else tuple(inputs)
    with _tracing():
        function(*arguments, **(keywords or {}))


class TracerWarning(Warning):
    """A trace leaves something out. Nothing here warns so, for a run is a plain one."""


def interface(obj: T) -> T:
    """The class, as it is."""
    return obj


def _overload(func: F) -> F:
    """The declaration, which the definition after it replaces."""
    return func


_overload_method = _overload


def freeze(
    mod: Any,
    preserved_attrs: Any = None,
    optimize_numerics: bool = True,
) -> Any:
    """A module in evaluation mode, as it is. RuntimeError for one in training mode."""
    if mod.training:
        raise RuntimeError("freeze: expected a module in evaluation mode; call its eval() first")
    return mod


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True) -> None:
    """Nothing to do: see freeze()."""


def optimize_for_inference(mod: Any, other_methods: Any = None) -> Any:
    """A module, in evaluation mode from here on."""
    return mod.eval()


def fork(func: Callable[..., T], *args: Any, **kwargs: Any) -> Future[T]:
    """A future of func(*args, **kwargs), which is called at once."""
    future: Future[T] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[T]) -> T:
    """The value of a future."""
    return future.wait()


# The import at the top, which has the name of a module here.
del annotations
__getattr__ = _names.attributes_of(__name__, {"_get_trace_graph": "_trace_graph"})

__all__ = [
    "Attribute",
    "CompilationUnit",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
