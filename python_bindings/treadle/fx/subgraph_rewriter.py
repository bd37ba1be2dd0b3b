"""replace_pattern: every place of a graph that does what a small program does, done otherwise.

    def pattern(x, y):
        return treadle.relu(x + y)

    def replacement(x, y):
        return treadle.relu6(x + y)

    treadle.fx.replace_pattern(traced, pattern, replacement)

The arguments of the pattern stand for any values.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

from treadle import nn
from treadle.fx._symbolic_trace import symbolic_trace
from treadle.fx.graph import Graph
from treadle.fx.graph_module import GraphModule, _assign_attr, _get_attr, _has_attr
from treadle.fx.node import Node
from treadle.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher


class Match(NamedTuple):
    """A place where the pattern was: the last of its nodes, and for each node of the pattern the
    node of the graph."""

    anchor: Node
    nodes_map: Dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """As Match, with the nodes that were put there."""

    anchor: Node
    nodes_map: Dict[Node, Node]
    replacements: List[Node]


def _graph_of(program: Any) -> Graph:
    if isinstance(program, Graph):
        return program
    if isinstance(program, GraphModule):
        return program.graph
    return symbolic_trace(program).graph


def replace_pattern(
    gm: GraphModule,
    pattern: Union[Callable, GraphModule],
    replacement: Union[Callable, GraphModule],
) -> List[Match]:
    """Replace all places of a graph, which do not overlap, where the pattern is. Both programs take
    as many arguments and return as many values. Returns the places."""
    replaced = _replace(gm, pattern, replacement)
    return [Match(anchor=r.anchor, nodes_map=r.nodes_map) for r in replaced]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Union[Callable, Graph, GraphModule],
    replacement: Union[Callable, Graph, GraphModule, None] = None,
    match_filters: Optional[List[Callable[[InternalMatch, Graph, Graph], bool]]] = None,
    ignore_literals: bool = False,
    replacement_callback: Optional[Callable[[InternalMatch, Graph, Graph], Graph]] = None,
    node_name_match: str = "",
) -> List[ReplacedPatterns]:
    """As replace_pattern(), where all filters say True of (match, graph, pattern). With
    `ignore_literals` numbers and text need not be equal; `replacement_callback` makes the
    replacement of each place."""
    return _replace(
        gm, pattern, replacement, match_filters or [], ignore_literals, replacement_callback
    )


def _replace(
    gm: GraphModule,
    pattern: Any,
    replacement: Any,
    filters: Any = (),
    ignore_literals: bool = False,
    make_replacement: Optional[Callable] = None,
) -> List[ReplacedPatterns]:
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(
        pattern_graph,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=ignore_literals,
    )
    matches = [
        m for m in matcher.match(graph) if all(keep(m, graph, pattern_graph) for keep in filters)
    ]
    fixed = None if replacement is None else _graph_of(replacement)
    replaced: List[ReplacedPatterns] = []
    renewed: Dict[Node, Node] = {}
    for match in matches:
        new_graph = fixed if fixed is not None else make_replacement(match, graph, pattern_graph)  # type: ignore[misc]
        inputs = [
            renewed.get(node, node) if isinstance(node, Node) else node
            for node in match.placeholder_nodes
        ]
        arguments = [n for n in new_graph.nodes if n.op == "placeholder"]
        if len(arguments) != len(inputs):
            raise AssertionError(
                f"replace_pattern: expected a replacement with {len(inputs)} arguments, "
                f"got {len(arguments)}"
            )
        values = dict(zip(arguments, inputs))
        replaced.append(_replace_one(graph, match, new_graph, values, renewed))
    gm.recompile()
    if isinstance(replacement, nn.Module):
        _bring_attributes(gm, replacement)
    return replaced


def _replace_one(
    graph: Graph,
    match: InternalMatch,
    new_graph: Graph,
    values: Dict[Node, Any],
    renewed: Dict[Node, Node],
) -> ReplacedPatterns:
    inner = [n for n in match.nodes_map if n.op not in ("placeholder", "output")]
    places = {match.nodes_map[n] for n in inner}
    last = max((n for n in graph.nodes if n in places), key=_position(graph))
    before = set(graph.nodes)
    with graph.inserting_before(_first_user(graph, places, last)):
        result = graph.graph_copy(new_graph, values)
    made = [n for n in graph.nodes if n not in before]
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(results) != len(match.returning_nodes):
        raise AssertionError(
            f"replace_pattern: expected a replacement with {len(match.returning_nodes)} results, "
            f"got {len(results)}"
        )
    for old, new in zip(match.returning_nodes, results):
        old.replace_all_uses_with(new)  # type: ignore[arg-type]
        renewed[old] = new  # type: ignore[assignment]
    for node in reversed(graph.nodes):
        if node in places and not node.users:
            graph.erase_node(node)
    return ReplacedPatterns(match.anchors[0], match.nodes_map, made)


def _position(graph: Graph) -> Callable[[Node], int]:
    order = {node: i for i, node in enumerate(graph.nodes)}
    return order.__getitem__


def _first_user(graph: Graph, places: Any, last: Node) -> Node:
    """The node before which the new ones stand: the first that uses a value of the place, but
    behind all of its inputs."""
    position = _position(graph)
    users = [u for p in places for u in p.users if u not in places]
    inputs = [i for p in places for i in p.all_input_nodes if i not in places]
    lowest = max([position(i) for i in inputs], default=-1)
    first = min([position(u) for u in users if position(u) > lowest], default=position(last) + 1)
    nodes = list(graph.nodes)
    return nodes[min(first, position(last) + 1)] if first < len(nodes) else last.next


def _bring_attributes(gm: GraphModule, replacement: nn.Module) -> None:
    """Give the module what the nodes that are new need, of the replacement."""
    gm.delete_all_unused_submodules()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _has_attr(gm, node.target):
            continue
        if not _has_attr(replacement, node.target):
            raise RuntimeError(
                f"replace_pattern: expected the module or the replacement to have {node.target}"
            )
        _assign_attr(copy.deepcopy(_get_attr(replacement, node.target)), gm, node.target)
    gm.graph.lint()


__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]
