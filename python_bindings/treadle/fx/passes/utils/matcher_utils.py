"""SubgraphMatcher: the places of a graph where another graph is found."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Set, Tuple

from treadle._C import Tensor
from treadle.fx.graph import Graph
from treadle.fx.node import Node


@dataclass
class InternalMatch:
    """A place: the nodes of the graph that end it, for each node of the pattern the node there,
    and the values that stand for the pattern's arguments and results."""

    anchors: List[Node]
    nodes_map: Dict[Node, Node] = field(default_factory=dict)
    placeholder_nodes: List[Node] = field(default_factory=list)
    returning_nodes: List[Node] = field(default_factory=list)
    name_node_map: Dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> "InternalMatch":
        return InternalMatch(
            anchors=self.anchors,
            nodes_map=self.nodes_map.copy(),
            placeholder_nodes=self.placeholder_nodes.copy(),
            returning_nodes=self.returning_nodes.copy(),
        )


class SubgraphMatcher:
    """Finds a pattern in graphs. Its arguments match any value unless `match_placeholder`; what it
    returns may have other users, what is inside must not."""

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher: expected a pattern with nodes, got an empty graph")
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        output = pattern.output_node()
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        self.pattern_returning_nodes: List[Node] = list(output.all_input_nodes)
        if match_output:
            self.pattern_anchors = [output]
        else:
            self.pattern_anchors = [n for n in output.all_input_nodes if len(n.users) == 1]

    # ---- nodes and values ----

    def _same_step(self, pn: Node, gn: Node) -> bool:
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return _value_at(pn) is _value_at(gn) or _equal(_value_at(pn), _value_at(gn))
        return pn.target == gn.target

    def _match_values(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        if isinstance(pn, Node):
            if isinstance(gn, Node):
                return self._match_nodes(pn, gn, match)
            if pn.op == "placeholder" and not self.match_placeholder:
                # An argument of the pattern may stand for a number as well.
                if pn in match.nodes_map:
                    return match.nodes_map[pn] == gn
                match.nodes_map[pn] = gn
                return True
            return False
        if isinstance(gn, Node):
            return False
        if isinstance(pn, (list, tuple)) and isinstance(gn, (list, tuple)):
            return len(pn) == len(gn) and all(
                self._match_values(p, g, match) for p, g in zip(pn, gn)
            )
        if isinstance(pn, dict) and isinstance(gn, dict):
            return pn.keys() == gn.keys() and all(
                self._match_values(pn[k], gn[k], match) for k in pn
            )
        if isinstance(pn, slice) and isinstance(gn, slice):
            return self._match_values(
                (pn.start, pn.stop, pn.step), (gn.start, gn.stop, gn.step), match
            )
        return self.ignore_literals or (type(pn) is type(gn) and pn == gn)

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch) -> bool:
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if any(other is gn for key, other in match.nodes_map.items() if key.op != "placeholder"):
            if pn.op != "placeholder":
                return False
        if not self._same_step(pn, gn):
            return False
        saved = copy.copy(match)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        args, kwargs = _aligned(pn, gn)
        if (
            args is not None
            and all(self._match_values(p, g, match) for p, g in args)
            and all(self._match_values(p, g, match) for p, g in kwargs)
        ):
            return True
        match.nodes_map = saved.nodes_map
        return False

    def _is_contained(self, nodes_map: Dict[Node, Any]) -> bool:
        """Whether nobody outside uses what is inside, and is not returned."""
        back = {g: p for p, g in nodes_map.items() if isinstance(g, Node)}
        for pn, gn in nodes_map.items():
            if pn.op in ("placeholder", "get_attr") or pn in self.pattern_returning_nodes:
                continue
            if any(user not in back for user in gn.users):
                return False
        return True

    def match(self, graph: Graph, node_name_match: str = "") -> List[InternalMatch]:
        """The places in a graph, in its order."""
        candidates: List[Tuple[Node, List[Node]]] = []
        for anchor in self.pattern_anchors:
            nodes = [n for n in reversed(graph.nodes) if self._same_step(anchor, n)]
            candidates.append((anchor, nodes))
        if not candidates or any(not nodes for _, nodes in candidates):
            return []
        found: List[InternalMatch] = []

        def extend(index: int, match: InternalMatch) -> None:
            if index == len(candidates):
                match.placeholder_nodes = [
                    match.nodes_map[p]
                    for p in self.pattern_placeholder_nodes
                    if p in match.nodes_map
                ]
                match.returning_nodes = [
                    match.nodes_map[p] for p in self.pattern_returning_nodes if p in match.nodes_map
                ]
                found.append(match)
                return
            anchor, nodes = candidates[index]
            for node in nodes:
                attempt = copy.copy(match)
                if self._match_nodes(anchor, node, attempt):
                    extend(index + 1, attempt)

        extend(0, InternalMatch(anchors=[]))
        for match in found:
            match.anchors = [match.nodes_map[a] for a in self.pattern_anchors]
        kept = [m for m in found if self._is_contained(m.nodes_map)]
        kept = list(reversed(kept)) if not self.remove_overlapping_matches else _apart(kept)
        order = {node: i for i, node in enumerate(graph.nodes)}
        return sorted(kept, key=lambda m: order[m.anchors[0]])


def _apart(matches: List[InternalMatch]) -> List[InternalMatch]:
    """The matches that share no step with one before."""
    kept: List[InternalMatch] = []
    taken: Set[Node] = set()
    for match in matches:
        outer = ("placeholder", "get_attr", "output")
        inner = {g for p, g in match.nodes_map.items() if p.op not in outer}
        if not inner & taken:
            taken |= inner
            kept.append(match)
    return kept


def _value_at(node: Node) -> Any:
    value: Any = node.graph.owning_module
    for part in node.target.split("."):
        value = getattr(value, part, None)
    return value


def _equal(one: Any, other: Any) -> bool:
    """Whether attributes match: tensors do whatever their values, as arguments of a pattern do."""
    both = isinstance(one, Tensor) and isinstance(other, Tensor)
    return both or type(one) is type(other)


def _aligned(pn: Node, gn: Node) -> Tuple[Optional[List[Tuple]], List[Tuple]]:
    """The arguments of two nodes as pairs; None where they do not go together."""
    if len(pn.args) == len(gn.args) and pn.kwargs.keys() == gn.kwargs.keys():
        return list(zip(pn.args, gn.args)), [(pn.kwargs[k], gn.kwargs[k]) for k in pn.kwargs]
    one, other = _by_name(pn), _by_name(gn)
    if one is None or other is None or one.keys() != other.keys():
        return None, []
    return [], [(one[k], other[k]) for k in one]


def _by_name(node: Node) -> Optional[Dict[str, Any]]:
    from treadle.fx.operator_schemas import normalize_function

    if node.op != "call_function":
        return None
    made = normalize_function(
        node.target, node.args, node.kwargs, normalize_to_only_use_kwargs=True
    )
    return None if made is None else dict(made.kwargs)


__all__ = ["InternalMatch", "SubgraphMatcher"]
