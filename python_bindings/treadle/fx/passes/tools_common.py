"""The common parts of passes that split graphs."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import collections
import heapq
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Set, Tuple, Union

from treadle import nn
from treadle._C import Tensor
from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node, _get_qualified_name

Tensors = Union[Tuple[Tensor], List[Tensor]]
TensorOrTensors = Union[Tensor, Tensors]
NodeList = List[Node]
NodeSet = Set[Node]
Names = List[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules: Mapping[str, nn.Module], node: Node) -> str:
    """The target of a node, as text: the class of a module, the name of a function or method."""
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
    return kind is not None and issubclass(kind, Tensor)


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


class FxNetAccFusionsFinder:
    """Finds groups of nodes for a device that give one another something else than tensors, so that
    they cannot be parted. Called, it returns for each such node the nodes of its group. Groups that
    have a node for elsewhere are no groups, and their nodes are taken out of `acc_nodes`."""

    @dataclass
    class FusionGroup:
        """A group: where its first node is, its nodes, what they are given from outside, and those
        whose neighbours are still to be looked at."""

        top_node_idx: int
        nodes: NodeSet
        inputs: NodeSet
        nodes_need_process: NodeSet

        def add_node(self, node: Node) -> None:
            """Take a node in. Nothing if it is there."""
            if node in self.nodes:
                return
            self.nodes.add(node)
            self.nodes_need_process.add(node)
            self.inputs.discard(node)
            self.inputs.update(
                n for n in node.all_input_nodes if n.op in CALLABLE_NODE_OPS and n not in self.nodes
            )

    def __init__(self, module: GraphModule, acc_nodes: NodeSet) -> None:
        self.module, self.acc_nodes = module, acc_nodes
        self.nodes = list(module.graph.nodes)

    def recursive_add_node(
        self,
        fusion_group: FusionGroup,
        inputs: Union[NodeSet, NodeList],
        visited: Optional[NodeSet] = None,
    ) -> bool:
        """Take in the nodes on all ways from the group to these inputs, themselves included;
        whether there was such a way."""
        seen = set() if visited is None else visited
        found = False
        for node in inputs:
            if node in fusion_group.nodes:
                found = True
            elif node.op in CALLABLE_NODE_OPS and node not in seen:
                seen.add(node)
                if self.recursive_add_node(fusion_group, node.all_input_nodes, seen):
                    fusion_group.add_node(node)
                    found = True
        return found

    def __call__(self) -> Dict[Node, NodeSet]:
        groups: Dict[Node, FxNetAccFusionsFinder.FusionGroup] = {}
        place = {node: i for i, node in enumerate(self.nodes)}
        for node in self.nodes:
            if node not in self.acc_nodes or node in groups or is_node_output_tensor(node):
                continue
            group = self.FusionGroup(place[node], set(), set(), set())
            group.add_node(node)
            while group.nodes_need_process:
                self._look_around(group, group.nodes_need_process.pop(), groups)
            group.top_node_idx = min(place[n] for n in group.nodes)
            if group.nodes <= self.acc_nodes:
                groups.update(dict.fromkeys(group.nodes, group))
            else:
                self.acc_nodes -= group.nodes
        return {node: group.nodes for node, group in groups.items()}

    def _look_around(self, group: FusionGroup, node: Node, groups: Dict[Node, FusionGroup]) -> None:
        """Take in the neighbours with which a node shares something else than a tensor, all that
        lies between them and the group, and the groups that these are in."""
        near = [n for n in node.all_input_nodes if not is_node_output_tensor(n)]
        near += [] if is_node_output_tensor(node) else list(node.users)
        for other in near:
            if other.op in CALLABLE_NODE_OPS:
                group.add_node(other)
                self.recursive_add_node(group, set(group.inputs))
        if node in groups:
            for other in groups[node].nodes:
                group.add_node(other)


__all__ = [
    "FxNetAccFusionsFinder",
    "get_acc_ops_name",
    "get_node_target",
    "is_node_output_tensor",
    "legalize_graph",
    "stable_topological_sort",
]
