"""CSEPass: a step that is in a graph twice, with the same arguments, is done once."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Optional, Set

from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node, _draws_numbers
from treadle.fx.passes.infra.pass_base import PassBase, PassResult
from treadle.utils._pytree import tree_flatten as tree_flatten


def _of_aten(*names: str) -> Set[Any]:
    from treadle._ops import ops

    found = (getattr(ops.aten, name, None) for name in names)
    return {packet for packet in found if packet is not None}


rand_ops = _of_aten(
    "dropout", "_fused_dropout", "_standard_gamma", "bernoulli", "multinomial", "native_dropout",
    "normal", "poisson", "binomial", "rrelu", "rand_like", "rand", "randint", "randn", "randperm",
)  # fmt: skip
inplace_ops = _of_aten(
    "add_", "sub_", "mul_", "div_", "pow_", "lerp_", "relu_", "sigmoid_", "tanh_",
)  # fmt: skip


def get_CSE_banned_ops() -> Set[Any]:  # noqa: N802
    """Operators that draw random numbers or write to their arguments."""
    return rand_ops | inplace_ops


def _key(value: Any) -> Any:
    """A value that can be looked up, with its type: 1 and True are different arguments."""
    leaves, form = tree_flatten(value)
    return tuple((type(leaf), leaf) for leaf in leaves), form


class CSEPass(PassBase):
    """Gives one node in place of several of a function with the same arguments; not of those of
    `banned_ops`, by default get_CSE_banned_ops(), nor of such as do more than compute a value."""

    def __init__(self, banned_ops: Optional[Set[Any]] = None) -> None:
        super().__init__()
        self.banned_ops = get_CSE_banned_ops() if banned_ops is None else banned_ops

    def _may_be_shared(self, node: Node) -> bool:
        packet = getattr(node.target, "overloadpacket", node.target)
        return (
            node.op == "call_function"
            and packet not in self.banned_ops
            and not node.is_impure()
            and not _draws_numbers(node.target)
        )

    def call(self, graph_module: GraphModule) -> PassResult:
        """Change the graph; gives whether something was there twice."""
        known: Dict[Any, Node] = {}
        changed = False
        for node in list(graph_module.graph.nodes):
            if not self._may_be_shared(node):
                continue
            try:
                key = (node.target, _key((tuple(node.args), dict(node.kwargs))))
                first = known.setdefault(key, node)
            except TypeError:  # an argument that cannot be looked up
                continue
            if first is not node:
                node.replace_all_uses_with(first)
                graph_module.graph.erase_node(node)
                changed = True
        if changed:
            graph_module.recompile()
        return PassResult(graph_module, changed)


__all__ = ["CSEPass", "get_CSE_banned_ops", "inplace_ops", "rand_ops", "tree_flatten"]
