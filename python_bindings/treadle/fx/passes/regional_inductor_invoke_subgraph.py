"""regional_inductor_invoke_subgraph: parts of a graph that have a compiler of their own. Programs
run as they are written, so that the graph stays as it is."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle.fx.graph_module import GraphModule


def regional_inductor_invoke_subgraph(gm: GraphModule, *example_args: Any) -> GraphModule:
    """The module as it is."""
    return gm


__all__ = ["regional_inductor_invoke_subgraph"]
