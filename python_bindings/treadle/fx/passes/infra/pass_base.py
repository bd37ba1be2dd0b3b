"""PassBase: a pass over graphs that says whether it changed something."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
from typing import NamedTuple, Optional

from treadle.fx.graph_module import GraphModule


class PassResult(NamedTuple):
    """The module after a pass, and whether the pass changed it."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """A pass: an object that is called with a GraphModule. Subclasses define call(), and may check
    what is given to it and what it made by requires() and ensures()."""

    def __call__(self, graph_module: GraphModule) -> Optional[PassResult]:
        """requires(), call() and ensures()."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> Optional[PassResult]:
        """The pass itself."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027  a pass may have none
        """Raises if the module is not what the pass expects."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027  a pass may have none
        """Raises if the pass did not make what it promises."""


__all__ = ["PassBase", "PassResult"]
