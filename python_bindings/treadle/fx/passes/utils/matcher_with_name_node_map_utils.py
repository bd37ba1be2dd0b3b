"""SubgraphMatcherWithNameNodeMap: matches in which the nodes of the pattern can be asked for by
names that the pattern gives them.

    def pattern(x, weight):
        conv = F.conv2d(x, weight)
        return F.relu(conv), {"conv": conv}
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from treadle.fx.graph import Graph
from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node
from treadle.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher


def _without_names(pattern: GraphModule) -> Tuple[GraphModule, Dict[str, Node]]:
    """The pattern without the dictionary that it returns last, and what is in that."""
    output = pattern.graph.output_node()
    *results, names = output.args[0]
    if not isinstance(names, dict):
        raise AssertionError(
            "SubgraphMatcherWithNameNodeMap: expected a pattern that returns a dictionary of its "
            f"nodes last, got {type(names).__name__}"
        )
    output.args = (results[0] if len(results) == 1 else tuple(results),)
    pattern.recompile()
    return pattern, dict(names)


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """A SubgraphMatcher for a pattern whose last result is a dictionary of its nodes; the matches
    have `name_node_map`, the nodes that were found by those names."""

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        pattern_gm, self.name_node_map = _without_names(pattern_gm)
        self.pattern_gm = pattern_gm
        super().__init__(
            pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches,
            ignore_literals,
        )  # fmt: skip

    def match(self, graph: Graph, node_name_match: Any = "") -> List[InternalMatch]:
        """The places where the pattern is."""
        found = super().match(graph)
        for one in found:
            names = self.name_node_map.items()
            one.name_node_map = {name: one.nodes_map[node] for name, node in names}
        return found


__all__ = ["SubgraphMatcherWithNameNodeMap"]
