"""Nodes by the function or layer of the program that they came of, as tracers note it in
`meta["source_fn_stack"]`: a list of pairs of a name and that function or class."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional

from treadle.fx.graph import Graph
from treadle.fx.node import Node


@dataclass
class SourcePartition:
    """The nodes that came of one call of a function or layer; those outside whose values they take,
    those whose values others use, and the parameters among what they take."""

    nodes: List[Node]
    source: Any
    input_nodes: List[Node] = field(default_factory=list)
    output_nodes: List[Node] = field(default_factory=list)
    params: List[Node] = field(default_factory=list)


def get_source_partitions(
    graph: Graph,
    wanted_sources: List[Any],
    filter_fn: Optional[Callable[[Node], bool]] = None,
) -> Dict[Any, List[SourcePartition]]:
    """For each function or class that is wanted the partitions of its calls; of those whose results
    `filter_fn` takes, if it is given."""
    groups: Dict[Any, Dict[str, List[Node]]] = {}
    for node in graph.nodes:
        stack = node.meta.get("source_fn_stack") or [node.meta.get("torch_fn", (None, None))]
        name, source = stack[-1]
        if source in wanted_sources:
            groups.setdefault(source, {}).setdefault(name, []).append(node)
    made = {s: [_partition(nodes, s) for nodes in calls.values()] for s, calls in groups.items()}
    if filter_fn is None:
        return made
    kept = {s: [p for p in ps if all(map(filter_fn, p.output_nodes))] for s, ps in made.items()}
    return {source: partitions for source, partitions in kept.items() if partitions}


def _partition(nodes: List[Node], source: Any) -> SourcePartition:
    taken = dict.fromkeys(n for node in nodes for n in node.all_input_nodes if n not in nodes)
    outputs = [n for n in nodes if any(user not in nodes for user in n.users)]
    own = [n for n in nodes if n.op == "get_attr"]
    params = [*(n for n in taken if n.op == "get_attr"), *own]
    inputs = [n for n in taken if n.op != "get_attr"]
    return SourcePartition(nodes, source, inputs, outputs, params)


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Whether the second takes a value of the first."""
    return any(n in subgraph1.nodes for node in subgraph2.nodes for n in node.all_input_nodes)


__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]
