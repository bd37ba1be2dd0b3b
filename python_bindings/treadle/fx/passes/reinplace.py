"""reinplace: calls that may write their result over an input that nobody needs any more.

    reinplace(traced, x)      # x.relu().add(1) becomes x.relu().add_(1)

It is for graphs without gradients. A run on examples finds the nodes that share memory.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import operator
from typing import Any, Dict, List, Optional, Set

from treadle import _names
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.fx.graph_module import GraphModule
from treadle.fx.interpreter import Interpreter
from treadle.fx.node import Node

_OF_OPERATORS = {
    operator.add: "add_",
    operator.sub: "sub_",
    operator.mul: "mul_",
    operator.truediv: "div_",
    operator.floordiv: "floor_divide_",
    operator.pow: "pow_",
    operator.neg: "neg_",
    operator.and_: "bitwise_and_",
    operator.or_: "bitwise_or_",
    operator.xor: "bitwise_xor_",
}
# Methods whose form with a _ does something else.
_OTHERWISE = {"bernoulli", "set", "resize", "fill", "copy", "apply", "map"}


class _Values(Interpreter):
    """Keeps the result of each node."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.found: Dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        self.found[n] = super().run_node(n)
        return self.found[n]


def _method_of(node: Node) -> Optional[str]:
    """The method that does the same and writes over its tensor; None if there is none."""
    if node.op not in ("call_function", "call_method") or "out" in node.kwargs:
        return None
    if node.target in _OF_OPERATORS:
        return _OF_OPERATORS[node.target]
    name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
    if node.op == "call_function" and getattr(_names.package(), name, None) is not node.target:
        return None
    is_one = name not in _OTHERWISE and not name.endswith("_")
    return f"{name}_" if is_one and hasattr(Tensor, f"{name}_") else None


def _memory(value: Any) -> Set[int]:
    """The addresses of the storages of the tensors in a value."""
    if isinstance(value, Tensor):
        return {value.untyped_storage().data_ptr()}
    if isinstance(value, (tuple, list)):
        return set().union(*map(_memory, value))
    return set()


class _Sharing:
    """The nodes that share memory, of their own accord and as calls write over their inputs."""

    def __init__(self, nodes: List[Node], values: Dict[Node, Any]) -> None:
        self._nodes, self._place = nodes, {node: i for i, node in enumerate(nodes)}
        self.memory = {node: set(_memory(values[node])) for node in nodes}

    def sharing(self, node: Node) -> List[Node]:
        """The nodes that share memory with a node, itself among them."""
        return [other for other in self._nodes if self.memory[other] & self.memory[node]]

    def is_needed(self, node: Node, after: Node) -> bool:
        """Whether the memory of a node is that of an input, or is read after another node."""
        shared = self.sharing(node)
        if any(other.op in ("placeholder", "get_attr") for other in shared):
            return True
        users = (user for other in shared for user in other.users)
        return any(self._place[user] > self._place[after] for user in users)

    def join(self, result: Node, given: Node) -> None:
        """Let a result have the memory of an input."""
        together = self.memory[result] | self.memory[given]
        for node in {*self.sharing(result), *self.sharing(given)}:
            self.memory[node] = self.memory[node] | together


def _is_same_form(given: Any, result: Any) -> bool:
    if not (isinstance(given, Tensor) and isinstance(result, Tensor)):
        return False
    spread = all(stride or size < 2 for size, stride in zip(given.shape, given.stride()))
    same = (given.shape, given.dtype, given.device) == (result.shape, result.dtype, result.device)
    return same and spread and given.numel() > 0


def reinplace(gm: GraphModule, *sample_args: Any) -> GraphModule:
    """Change the graph so that calls of functions and methods write over their first argument,
    where that is a result of the graph which nothing reads later, and return the module. Inputs
    and parameters are never written."""
    run = _Values(gm)
    with no_grad():
        run.run(*sample_args)
    nodes = list(gm.graph.nodes)
    sharing = _Sharing(nodes, run.found)
    for node in nodes:
        method = _method_of(node)
        given = node.args[0] if node.args else None
        if method is None or not isinstance(given, Node):
            continue
        others = [n for n in node.all_input_nodes if n is not given]
        if node.args[1:].count(given) or given in node.kwargs.values():
            continue
        if any(sharing.memory[n] & sharing.memory[given] for n in others):
            continue
        if sharing.memory[node] & sharing.memory[given]:
            continue
        if not _is_same_form(run.found[given], run.found[node]):
            continue
        if sharing.is_needed(given, node):
            continue
        sharing.join(node, given)
        node.op, node.target = "call_method", method
    gm.recompile()
    return gm


__all__ = ["reinplace"]
