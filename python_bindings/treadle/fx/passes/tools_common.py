"""What passes that split graphs share."""

from __future__ import annotations

import collections
import heapq
from typing import List, Mapping, Set, Tuple, Union

import treadle
from treadle import nn
from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node, _get_qualified_name

Tensors = Union[Tuple[treadle.Tensor], List[treadle.Tensor]]
TensorOrTensors = Union[treadle.Tensor, Tensors]
NodeList = List[Node]
NodeSet = Set[Node]
Names = List[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules: Mapping[str, nn.Module], node: Node) -> str:
    """What a node calls, as text: the class of a module, the name of a function or method."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(
            f"get_node_target: expected a node of {', '.join(sorted(CALLABLE_NODE_OPS))}, "
            f"got {node.op}"
        )
    if node.op == "call_module":
        module = submodules[node.target]
        return f"{type(module).__module__}.{type(module).__qualname__}"
    if node.op == "call_function":
        return _get_qualified_name(node.target)
    return node.target


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Put the nodes of a graph in an order in which each is behind those it uses. RuntimeError if
    there is none."""
    waiting = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    ready = collections.deque(node for node, count in waiting.items() if count == 0)
    order: List[Node] = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for user in node.users:
            waiting[user] -= 1
            if waiting[user] == 0:
                ready.append(user)
    if len(order) < len(gm.graph.nodes):
        raise RuntimeError("legalize_graph: expected a graph without cycles")
    for node in sorted(order, key=lambda n: n.op == "output"):
        gm.graph._root.prepend(node)
    gm.recompile()
    return gm


def is_node_output_tensor(node: Node) -> bool:
    """Whether ShapeProp found that the value of a node is a tensor."""
    kind = node.meta.get("type", None)
    return kind is not None and issubclass(kind, treadle.Tensor)


def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Put the nodes of a graph in an order in which each is behind those it uses, and the others as
    near to the order they had as that allows. RuntimeError if there is none."""
    place = {node: i for i, node in enumerate(gm.graph.nodes)}
    waiting = {node: len(node.all_input_nodes) for node in place}
    ready = [i for node, i in place.items() if waiting[node] == 0]
    nodes, order = list(place), []
    while ready:
        node = nodes[heapq.heappop(ready)]
        order.append(node)
        for user in node.users:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, place[user])
    if len(order) < len(nodes):
        raise RuntimeError("stable_topological_sort: expected a graph without cycles")
    for node in order:
        gm.graph._root.prepend(node)
    gm.recompile()
    return gm


def get_acc_ops_name(k: Union[str, type]) -> str:
    """The name of what a node calls, with its module; of a function of a package of operators for a
    device, `acc_ops`, that alone."""
    if isinstance(k, str):
        return k
    if k.__module__ and "acc_ops" in k.__module__:
        return f"acc_ops.{k.__name__}"
    module = k.__module__.replace("_ops", "ops") if k.__module__ else ""
    return f"{module}.{k.__name__}"


__all__ = [
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]
