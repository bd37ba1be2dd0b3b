"""GraphTransformObserver: runs a pass over a module, by its name.

Example:

    GraphTransformObserver(traced, "fuse").apply_graph_pass(fuse)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Optional, TypeVar

from treadle.fx.graph import Graph
from treadle.fx.graph_module import GraphModule

T = TypeVar("T")


class GraphTransformObserver:
    """Runs passes over `gm`. `passname` and `subsystem` are kept. NotImplementedError for a
    `log_url`, into which graphs would be drawn before and after."""

    def __init__(
        self,
        gm: GraphModule,
        passname: str,
        subsystem: Optional[str] = None,
        log_url: Optional[str] = None,
    ) -> None:
        if log_url is not None:
            raise NotImplementedError(
                f"GraphTransformObserver: expected no log_url, got {log_url!r}: "
                "graphs are not drawn"
            )
        self.gm, self.passname, self.subsystem, self.log_url = gm, passname, subsystem, log_url
        self.active = False

    def apply_gm_pass(self, pass_fn: Callable[[GraphModule], T]) -> Optional[T]:
        """The result of a pass over the module."""
        with self:
            return pass_fn(self.gm)

    def apply_graph_pass(self, pass_fn: Callable[[Graph], T]) -> Optional[T]:
        """The result of a pass over the graph of the module."""
        with self:
            return pass_fn(self.gm.graph)

    def __enter__(self) -> GraphTransformObserver:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


__all__ = ["GraphTransformObserver"]
