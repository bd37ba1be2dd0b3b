"""A graph split by the tags of its nodes.

Example:

    for node in traced.graph.nodes:
        node.tag = "first" if node.name in names else "second"
    split = split_by_tags(traced, ["first", "second"])      # split.first, split.second
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from operator import getitem
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Set, Tuple, Type, Union

from treadle import nn
from treadle.fx.graph import Graph
from treadle.fx.graph_module import GraphModule, _copy_attr
from treadle.fx.node import Node, map_arg
from treadle.fx.passes.tools_common import CALLABLE_NODE_OPS, is_node_output_tensor
from treadle.fx.passes.utils.common import HolderModule, lift_subgraph_as_module

if TYPE_CHECKING:
    from treadle.fx.passes.splitter_base import Subgraph


def getattr_recursive(obj: Any, name: str) -> Any:
    """The attribute at a path; None where there is nothing."""
    for part in name.split("."):
        if not hasattr(obj, part):
            return None
        obj = getattr(obj, part)
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Put a value at a path."""
    path, _, name = attr.rpartition(".")
    setattr(getattr_recursive(obj, path) if path else obj, name, value)


@dataclass
class Component:
    """A part: its graph, its place and its name; the nodes of the whole graph that it takes, those
    of its own that stand for them, those that it returns, and its module."""

    graph: Graph
    order: int
    name: str
    input_placeholders: List[Node] = field(default_factory=list)
    orig_inputs: List[Node] = field(default_factory=list)
    orig_outputs: List[Node] = field(default_factory=list)
    getattr_maps: Dict[Node, Node] = field(default_factory=dict)
    constructor_args: List[str] = field(default_factory=list)
    gm: Optional[GraphModule] = None


def split_by_tags(
    gm: GraphModule,
    tags: List[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: Type[GraphModule] = GraphModule,  # noqa: N803
) -> Union[GraphModule, Tuple[GraphModule, Dict[str, str]]]:
    """A module with a submodule for each tag, of the nodes whose attribute `tag` it is, called in
    the order of the tags. A part returns a tuple where it has several results, or if `return_tuple`
    says so. With `return_fqn_mapping` also the paths in `gm` by the paths in the result.

    AssertionError for a node without a tag, and for one that uses a value of a later part.
    """
    parts = [Component(Graph(), order, tag) for order, tag in enumerate(tags)]
    part_of_tag = {part.name: part for part in parts}
    part_of: Dict[Node, Component] = {}
    values: Dict[Node, Node] = {}
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        tag = getattr(node, "tag", None)
        if tag not in part_of_tag:
            raise AssertionError(
                f"split_by_tags: expected a tag of {', '.join(tags)} on {node.name}, got {tag}"
            )
        part = part_of[node] = part_of_tag[tag]
        for used in node.all_input_nodes:
            if used in part_of and part_of[used].order > part.order:
                raise AssertionError(
                    f"split_by_tags: expected {node.name} of {part.name} not to use {used.name} "
                    f"of {part_of[used].name}, which comes later"
                )
        values[node] = part.graph.node_copy(node, lambda n, p=part: _inside(n, p, part_of, values))  # type: ignore[misc]
    output = gm.graph.output_node()
    for used in (*part_of, output):
        for node in used.all_input_nodes:
            own = part_of.get(node)
            if own is not None and own is not part_of.get(used) and node not in own.orig_outputs:
                own.orig_outputs.append(node)
    return _put_together(gm, parts, return_fqn_mapping, return_tuple, GraphModuleCls, values)


def _inside(
    node: Node, part: Component, part_of: Dict[Node, Component], values: Dict[Node, Node]
) -> Node:
    """The node of a part for a node of the whole graph."""
    if part_of.get(node) is part:
        return values[node]
    if node.op == "get_attr":
        if node not in part.getattr_maps:
            part.getattr_maps[node] = part.graph.get_attr(node.target, type_expr=node.type)
        return part.getattr_maps[node]
    if node not in part.orig_inputs:
        stands = part.graph.placeholder(node.name, type_expr=node.type)
        stands.meta = copy.copy(node.meta)
        part.orig_inputs.append(node)
        part.input_placeholders.append(stands)
    return part.input_placeholders[part.orig_inputs.index(node)]


def _put_together(
    gm: GraphModule,
    parts: List[Component],
    return_fqn_mapping: bool,
    return_tuple: bool,
    kind: Type[GraphModule],
    values: Dict[Node, Node],
) -> Union[GraphModule, Tuple[GraphModule, Dict[str, str]]]:
    made, outside = Graph(), {}
    paths: Dict[str, str] = {}
    modules: Dict[str, Optional[nn.Module]] = {}
    for node in gm.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            used = node.op == "placeholder" or node in gm.graph.output_node().all_input_nodes
            if used:
                outside[node] = made.node_copy(node)
    for part in parts:
        results = tuple(values[n] for n in part.orig_outputs)
        single = len(results) == 1 and not return_tuple
        part.graph.output(results[0] if single else results)
        part.gm, own = lift_subgraph_as_module(gm, part.graph, comp_name=part.name)
        paths.update(own)
        modules[part.name] = part.gm
        call = made.call_module(part.name, tuple(outside[n] for n in part.orig_inputs))
        for i, node in enumerate(part.orig_outputs):
            outside[node] = call if single else made.call_function(getitem, (call, i))
    output = gm.graph.output_node()
    made.output(map_arg(output.args[0], outside.__getitem__), output.type)
    holder = HolderModule(modules)
    for node in made.nodes:
        if node.op == "get_attr":
            _copy_attr(gm, holder, node.target)
    whole = kind(holder, made)
    return (whole, paths) if return_fqn_mapping else whole


def move_non_tensor_nodes_on_boundary(subgraphs: List[Subgraph]) -> None:
    """Move nodes that give no tensor to the subgraph that uses them, with all that uses them in
    their own, so that only tensors go from one subgraph to another. A node stays whose results
    more than one other subgraph would need. ShapeProp has to be run before."""
    home = {node: subgraph for subgraph in subgraphs for node in subgraph.nodes}
    order = {node: i for i, node in enumerate(home)}

    def movable(node: Node) -> bool:
        is_call = node.op in CALLABLE_NODE_OPS
        return is_call and node in home and not is_node_output_tensor(node)

    for subgraph in subgraphs:
        waiting = [
            node
            for node in subgraph.nodes
            if movable(node) and any(home.get(user) is not subgraph for user in node.users)
        ]
        while waiting:
            node = waiting.pop(0)
            if home[node] is not subgraph:
                continue
            together, places = _used_with(node, home)
            if len(places) != 1 or None in places:
                continue
            (target,) = places
            for moved in together:
                home[moved] = target
            subgraph.nodes = [n for n in subgraph.nodes if n not in together]
            target.nodes = sorted([*together, *target.nodes], key=order.__getitem__)
            given = {n for moved in together for n in moved.all_input_nodes}
            waiting += [n for n in given if movable(n) and home[n] is subgraph]


def _used_with(node: Node, home: Dict[Node, Subgraph]) -> Tuple[Set[Node], List[Any]]:
    """A node with all that uses its results in its subgraph, and the others that use theirs; None
    among them for what is in no subgraph."""
    subgraph, together, waiting = home[node], {node}, [node]
    places: List[Any] = []
    while waiting:
        for user in waiting.pop().users:
            place = home.get(user)
            if place is not subgraph:
                if not any(place is other for other in places):
                    places.append(place)
            elif user not in together:
                together.add(user)
                waiting.append(user)
    return together, places


__all__ = [
    "Component",
    "getattr_recursive",
    "move_non_tensor_nodes_on_boundary",
    "setattr_recursive",
    "split_by_tags",
]
