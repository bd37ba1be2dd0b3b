"""merge_matmul: products of several matrices with one are made a single product."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from operator import getitem
from typing import Any, Dict, List, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.fx._symbolic_trace import symbolic_trace as symbolic_trace
from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node
from treadle.fx.passes.tools_common import legalize_graph as legalize_graph


def split_result_tensors(result: Tensor, inputs: List[Tensor]) -> Tuple[Tensor, ...]:
    """The rows of a product by the inputs that they are of."""
    return _C.split(result, [x.shape[0] for x in inputs])


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Whether a node needs another: False if it does not, True if it does or if that cannot be
    told within some steps."""
    if a is b:
        return True
    if not a.all_input_nodes:
        return False
    if search_depth == 0:
        return True
    return any(may_depend_on(n, b, search_depth - 1) for n in a.all_input_nodes)


def are_nodes_independent(nodes: List[Node]) -> bool:
    """Whether none of the nodes needs another of them."""
    return not any(may_depend_on(a, b) for a, b in itertools.permutations(nodes, 2))


def merge_matmul(in_mod: Any) -> GraphModule:
    """A module in which `x @ w` and `y @ w`, written `torch.matmul(x, w)`, are parts of the product
    of x and y, one under the other, with w."""
    traced = symbolic_trace(in_mod)
    by_operand: Dict[Any, List[Node]] = {}
    for node in traced.graph.nodes:
        if node.op == "call_function" and node.target is _C.matmul and len(node.args) == 2:
            right = node.args[1]
            key = right.target if right.op == "get_attr" else right
            by_operand.setdefault(key, []).append(node)
    for products in by_operand.values():
        if len(products) < 2 or not are_nodes_independent(products):
            continue
        left = [node.args[0] for node in products]
        with traced.graph.inserting_before(products[0]):
            together = traced.graph.call_function(_C.cat, (left,), {})
            product = traced.graph.call_function(_C.matmul, (together, products[0].args[1]))
            parts = traced.graph.call_function(split_result_tensors, (product, left))
            results = [
                traced.graph.call_function(getitem, (parts, i)) for i in range(len(products))
            ]
        for node, result in zip(products, results):
            node.replace_all_uses_with(result)
            traced.graph.erase_node(node)
        legalize_graph(traced)
    traced.recompile()
    traced.graph.lint()
    return traced


__all__ = [
    "are_nodes_independent",
    "legalize_graph",
    "may_depend_on",
    "merge_matmul",
    "split_result_tensors",
    "symbolic_trace",
]
