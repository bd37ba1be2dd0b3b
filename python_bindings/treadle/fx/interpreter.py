"""Interpreter runs a graph node by node; Transformer makes a new graph while it does so."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

from treadle import nn
from treadle.fx import traceback as fx_traceback
from treadle.fx._symbolic_trace import Tracer
from treadle.fx.graph import Graph
from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Argument, Node, Target, map_aggregate, map_arg
from treadle.fx.proxy import Proxy


class Interpreter:
    """Runs the graph of a module. A subclass changes what a kind of node does by overriding the
    method of its name, each of which takes (target, args, kwargs)."""

    def __init__(
        self,
        module: nn.Module,
        garbage_collect_values: bool = True,
        graph: Optional[Graph] = None,
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else module.graph
        self.env: Dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: Dict[Node, List[Node]] = {}
        if garbage_collect_values:
            last_user: Dict[Node, Node] = {}
            for node in reversed(self.graph.nodes):
                for used in node._input_nodes:
                    if used not in last_user:
                        last_user[used] = node
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(
        self,
        *args: Any,
        initial_env: Optional[Dict[Node, Any]] = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Run the graph with arguments and return its result. `initial_env` has values of nodes
        that are then not computed. With enable_io_processing=False arguments and result are those
        of the graph, not of the program."""
        self.env = dict(initial_env) if initial_env is not None else {}
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    _tell_where(error, node)
                raise
            for done in self.user_to_last_uses.get(node, ()):
                del self.env[done]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: List[Any]) -> Any:
        """As run(), with the arguments in a list, which is emptied so that they can be let go."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def _set_current_node(self, node: Node) -> Any:
        return fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}")

    def run_node(self, n: Node) -> Any:
        """The value of a node."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """The next argument, or the default if there is no more. RuntimeError without either."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Interpreter: expected an argument for {target}, got too few arguments"
            ) from None

    def get_attr(self, target: Target, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """The attribute at a path of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Target, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """The result of the function."""
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """The result of the method of args[0]."""
        this, *rest = args
        return getattr(this, target)(*rest, **kwargs)

    def call_module(self, target: Target, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """The result of the submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute at a path. RuntimeError where there is none."""
        found: Any = self.module
        for i, part in enumerate(parts := target.split(".")):
            if not hasattr(found, part):
                raise RuntimeError(
                    f"Interpreter: expected the module to have {target}, "
                    f"but there is no {'.'.join(parts[: i + 1])}"
                )
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> Tuple[Tuple, Dict]:
        """The arguments of a node, with values in place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """An argument with values in place of nodes."""

        def load(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Interpreter: expected {node} to be computed before {n}, which uses it"
                )
            return self.env[node]

        return map_arg(args, load)


def _tell_where(error: Exception, node: Node) -> None:
    """Add to an error in which node it happened, once."""
    text = f"While executing {node.format_node()}"
    if node.stack_trace:
        text += f"\nOriginal traceback:\n{node.stack_trace}"
    if getattr(error, "_fx_node", None) is None and error.args and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n\n{text}", *error.args[1:])
        try:
            error._fx_node = node  # type: ignore[attr-defined]
        except AttributeError:
            pass


class Transformer(Interpreter):
    """Makes a new module of a graph: each method gets stand-ins, and what it does with them is
    recorded. A subclass overrides those of the nodes that are to become something else."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            def __init__(self, graph: Graph) -> None:
                super().__init__()
                self.graph = graph
                self.tensor_attrs: Dict[Any, str] = {}

            def is_leaf_module(self, _: nn.Module, __: str) -> bool:
                return True

        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Target, args: Tuple, kwargs: Dict[str, Any]) -> Proxy:
        """A stand-in for an argument of the new graph."""
        default = next(iter(args), NotImplemented) if args else NotImplemented
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Target, args: Tuple, kwargs: Dict[str, Any]) -> Proxy:
        """A stand-in for an attribute of the module."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """A stand-in for what the submodule returns."""
        submodule = self.fetch_attr(target)
        return self.tracer.call_module(submodule, submodule.forward, args, kwargs)

    def call_function(self, target: Target, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        """A stand-in for what the function returns."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            before = self.graph.output_node()

            def strip(value: Any) -> Any:
                return value.node if isinstance(value, Proxy) else value

            made = self.new_graph.output(map_aggregate(result, strip))
            made.type = before.type
            made.meta.update(before.meta)
        return GraphModule(self.module, self.new_graph)


__all__ = ["Interpreter", "Transformer"]
