"""make_fx: the graph of a function, made while it runs on example values.

    traced = make_fx(function)(x, y)     # a GraphModule

Branches and loops go the way that the examples take, and their sizes are fixed.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import functools
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Callable, Iterator, Mapping, Optional, Tuple

from treadle import nn
from treadle.fx._record import record
from treadle.fx._symbolic_trace import Tracer
from treadle.fx.graph import Graph, py_sym_types
from treadle.fx.graph_module import GraphModule
from treadle.fx.interpreter import Interpreter
from treadle.fx.proxy import GraphAppendingTracer, Proxy


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


def get_innermost_proxy_mode() -> Optional[Any]:
    """The recorder that is at work on this thread; None outside make_fx()."""
    return get_proxy_mode()


def handle_sym_dispatch(func: Callable, args: Any, kwargs: Any) -> Any:
    """The result of a function of sizes inside of make_fx(), where sizes are numbers.
    AssertionError outside of it."""
    if get_proxy_mode() is None:
        raise AssertionError("handle_sym_dispatch: expected make_fx() at work, got none")
    return func(*args, **kwargs)


@contextmanager
def maybe_enable_thunkify() -> Iterator[None]:
    """A block in which sizes would be recorded when they are needed. They are numbers."""
    yield


@contextmanager
def maybe_disable_thunkify() -> Iterator[None]:
    """A block in which sizes would be recorded at once. They are numbers."""
    yield


class PythonKeyTracer(Tracer):
    """A tracer that wraps the functions of no module unless it is told to."""

    def __init__(self, *, autowrap_modules: Tuple[ModuleType, ...] = ()) -> None:
        super().__init__(autowrap_modules=autowrap_modules)


def dispatch_trace(root: Any, tracer: Tracer, concrete_args: Optional[Any] = None) -> GraphModule:
    """The GraphModule of what a tracer makes of a module or function."""
    graph = tracer.trace(root, concrete_args)
    is_module = isinstance(root, nn.Module)
    name = type(root).__name__ if is_module else root.__name__
    return GraphModule(tracer.root, graph, name)


class DecompositionInterpreter(Interpreter):
    """Writes the graph of a module into a new one, with the calls of functions that a table has as
    calls of what it has for them. run() returns the stand-ins of the results."""

    def __init__(
        self,
        module: GraphModule,
        new_graph: Graph,
        decomposition_table: Optional[Mapping[Any, Callable[..., Any]]] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.decomposition_table = dict(decomposition_table or {})
        self.tracer = GraphAppendingTracer(new_graph)

    def _call(self, kind: str, target: Any, args: Any, kwargs: Any) -> Proxy:
        return self.tracer.create_proxy(kind, target, args, kwargs)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        """An input of the new graph; its value is passed over."""
        with contextlib.suppress(RuntimeError):  # there is no value for each
            super().placeholder(target, args, kwargs)
        return self._call("placeholder", target, args, kwargs)

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A read of the module's attribute in the new graph."""
        return self._call("get_attr", target, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The result of the table's entry for the function, or a call of it."""
        if target in self.decomposition_table:
            return self.decomposition_table[target](*args, **kwargs)
        return self._call("call_function", target, args, kwargs)

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A call of the method in the new graph."""
        return self._call("call_method", target, args, kwargs)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """A call of the submodule in the new graph."""
        return self._call("call_module", target, args, kwargs)

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The results of the new graph."""
        self.new_graph.output(self.tracer.create_arg(args[0]))
        return args[0]


class _Selective(DecompositionInterpreter):
    def __init__(self, *args: Any, should_decompose: Callable[[Any], bool]) -> None:
        super().__init__(*args)
        self._should = should_decompose

    def run_node(self, n: Any) -> Any:
        table = self.decomposition_table
        if n.op == "call_function" and n.target in table and not self._should(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return self._call("call_function", n.target, args, kwargs)
        return super().run_node(n)


def selective_decompose(
    joint_gm: GraphModule,
    *args: Any,
    decomposition: Optional[Mapping[Any, Callable[..., Any]]],
    should_decompose: Callable[[Any], bool],
    trace_joint_graph: bool,
) -> GraphModule:
    """A module whose calls of functions that `decomposition` has are calls of what it has for them,
    where `should_decompose` of the node says so. The example values and `trace_joint_graph` change
    nothing, as nothing is run."""
    made = Graph()
    _Selective(joint_gm, made, decomposition, should_decompose=should_decompose).run(*args)
    return GraphModule(joint_gm, made)


__all__ = [
    "DecompositionInterpreter",
    "PythonKeyTracer",
    "dispatch_trace",
    "get_innermost_proxy_mode",
    "get_proxy_mode",
    "handle_sym_dispatch",
    "make_fx",
    "maybe_disable_thunkify",
    "maybe_enable_thunkify",
    "py_sym_types",
    "selective_decompose",
]
