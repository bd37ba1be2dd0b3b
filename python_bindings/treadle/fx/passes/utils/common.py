"""Parts of graphs: a module made of one, two compared."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Dict, Optional, Tuple

from treadle import nn
from treadle.fx.graph import Graph
from treadle.fx.graph_module import GraphModule, _copy_attr
from treadle.fx.passes.utils.matcher_utils import SubgraphMatcher


class HolderModule(nn.Module):
    """Holds modules by name, for a GraphModule to take its own from."""

    def __init__(self, d: Dict[str, Optional[nn.Module]]) -> None:
        super().__init__()
        for name, module in d.items():
            self.add_module(name, module)


def lift_subgraph_as_module(
    gm: GraphModule, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> Tuple[GraphModule, Dict[str, str]]:
    """A module of a graph whose modules, parameters and buffers are taken from `gm`; and their
    paths in `gm` by their paths under `comp_name`."""
    holder = HolderModule({})
    paths: Dict[str, str] = {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr") or node.target in paths.values():
            continue
        _copy_attr(gm, holder, node.target)
        paths[f"{comp_name}.{node.target}" if comp_name else node.target] = node.target
    return GraphModule(holder, subgraph, class_name), paths


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Whether two graphs have the same inputs, outputs and steps, connected in the same way."""
    matcher = SubgraphMatcher(left, match_output=True, match_placeholder=True)
    return len(matcher.match(right)) > 0


__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]
