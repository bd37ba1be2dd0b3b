"""Nodes of a graph put into a module that the graph calls in their place.

Example:

    fused, inputs, outputs = fuse_as_graphmodule(module, nodes, "Fused")
    insert_subgm(module, fused, inputs, outputs)
    erase_nodes(module, nodes)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from operator import getitem
from typing import Any, Dict, Iterable, List, Optional, Tuple

from treadle.fx._compatibility import compatibility as compatibility
from treadle.fx.graph import Graph
from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node
from treadle.fx.passes.tools_common import legalize_graph as legalize_graph
from treadle.fx.passes.utils.common import lift_subgraph_as_module as lift_subgraph_as_module


def topo_sort(nodes: List[Node]) -> List[Node]:
    """The nodes in an order in which each is behind those of them that it uses. AssertionError if
    there is none."""
    among = dict.fromkeys(nodes)
    waiting = {n: sum(used in among for used in n.all_input_nodes) for n in nodes}
    order = [n for n in nodes if waiting[n] == 0]
    for node in order:  # it grows meanwhile
        for user in node.users:
            if user in waiting:
                waiting[user] -= 1
                if waiting[user] == 0:
                    order.append(user)
    if len(order) != len(nodes):
        raise AssertionError("topo_sort: expected nodes without cycles")
    return order


def validate_partition(partition: List[Node]) -> bool:
    """Whether nodes can become one: none of them needs, over nodes outside, the value of another
    of them."""
    among = dict.fromkeys(partition)
    waiting = [u for n in partition for u in n.users if u not in among]
    seen: Dict[Node, None] = {}
    while waiting:
        node = waiting.pop()
        if node in among:
            return False
        if node not in seen:
            seen[node] = None
            waiting += node.users
    return True


def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: List[Node],
    module_name: str,
    partition_lookup_table: Optional[Dict[Node, Optional[int]]] = None,
    *,
    always_return_tuple: bool = False,
) -> Tuple[GraphModule, Tuple[Node, ...], Tuple[Node, ...]]:
    """A module of copies of some nodes, in their order; the nodes whose values it takes; and those
    of its nodes whose values others use, which it returns, as a tuple if there are several or
    `always_return_tuple` says so. AssertionError for nodes that cannot become one."""
    if not all(n.graph.owning_module is gm and not n._erased for n in nodes):
        raise AssertionError("fuse_as_graphmodule: expected nodes of the module's graph")
    among = partition_lookup_table or dict.fromkeys(nodes)
    if not validate_partition(nodes):
        raise AssertionError(
            "fuse_as_graphmodule: expected nodes of which none needs another over nodes outside"
        )
    made = Graph()
    values: Dict[Node, Node] = {}
    inputs: List[Node] = []

    def value_of(node: Node) -> Node:
        if node in values:
            return values[node]
        if node.op == "get_attr" and node not in among:
            values[node] = made.node_copy(node)
            return values[node]
        inputs.append(node)
        values[node] = made.placeholder(node.name, type_expr=node.type)
        values[node].meta = copy.copy(node.meta)
        return values[node]

    for node in nodes:
        for used in node.all_input_nodes:
            if used not in values:
                value_of(used)
        values[node] = made.node_copy(node, value_of)
    outputs = [n for n in nodes if any(user not in among for user in n.users)]
    results = tuple(values[n] for n in outputs)
    made.output(results[0] if len(results) == 1 and not always_return_tuple else results)
    made.lint()
    fused, _ = lift_subgraph_as_module(gm, made, comp_name="", class_name=module_name)
    return fused, tuple(inputs), tuple(outputs)


def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: Tuple[Node, ...],
    orig_outputs: Tuple[Node, ...],
    insertion_point: Optional[Node] = None,
) -> GraphModule:
    """Have the module call another, by the name of its class, and use its results in place of those
    of `orig_outputs`: before `insertion_point`, or else behind the last input."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    place = insertion_point or _behind(gm, orig_inputs)
    with gm.graph.inserting_before(place):
        call = gm.graph.call_module(name, tuple(orig_inputs))
        returned = sub_gm.graph.output_node().args[0]
        if len(orig_outputs) == 1 and not isinstance(returned, (tuple, list)):
            results = [call]
        else:
            results = [gm.graph.call_function(getitem, (call, i)) for i in range(len(orig_outputs))]
    for before, after in zip(orig_outputs, results):
        after.meta = {**before.meta, **after.meta}
        before.replace_all_uses_with(after, lambda user, call=call: user is not call)  # type: ignore[misc]
    return gm


def _behind(gm: GraphModule, nodes: Iterable[Node]) -> Node:
    wanted = set(nodes)
    last = max((i for i, n in enumerate(gm.graph.nodes) if n in wanted), default=-1)
    return list(gm.graph.nodes)[last + 1]


def erase_nodes(gm: GraphModule, nodes: List[Node]) -> None:
    """Take nodes out, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule,
    partitions: List[Dict[Node, Optional[int]]],
    prefix: str = "fused_",
    always_return_tuple: bool = False,
) -> GraphModule:
    """Put the nodes of each partition into a module `fused_0` and so on, and give the module with
    its graph changed."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        fused, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", partition, always_return_tuple=always_return_tuple
        )
        # Behind all that it needs, before all that needs it: the nodes are sorted after.
        insert_subgm(gm, fused, inputs, outputs, _first(gm, nodes))
        erase_nodes(gm, nodes)
    return legalize_graph(gm)


def _first(gm: GraphModule, nodes: List[Node]) -> Any:
    among = set(nodes)
    return next(n for n in gm.graph.nodes if n in among)


__all__ = [
    "compatibility",
    "erase_nodes",
    "fuse_as_graphmodule",
    "fuse_by_partitions",
    "insert_subgm",
    "legalize_graph",
    "lift_subgraph_as_module",
    "topo_sort",
    "validate_partition",
]
