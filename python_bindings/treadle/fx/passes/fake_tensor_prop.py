"""FakeTensorProp: what each node of a graph gives, as a tensor without memory.

Example:

    FakeTensorProp(traced).propagate(x)
    next(iter(traced.graph.nodes)).meta["val"]      # a tensor on the meta device
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle._C import Tensor
from treadle.fx.graph_module import GraphModule
from treadle.fx.interpreter import Interpreter
from treadle.fx.node import Node
from treadle.utils._pytree import tree_map


def _without_memory(value: Any) -> Any:
    def one(leaf: Any) -> Any:
        return leaf.detach().to("meta") if isinstance(leaf, Tensor) else leaf

    return tree_map(one, value)


class FakeTensorProp(Interpreter):
    """Runs a graph on the meta device, and keeps the result of each node as `meta["val"]`.

    NotImplementedError for a `mode`: shapes are found by the meta device."""

    def __init__(self, module: GraphModule, mode: Any = None) -> None:
        super().__init__(module)
        if mode is not None:
            raise NotImplementedError(
                f"FakeTensorProp: expected no mode, got a {type(mode).__name__}: "
                "shapes are found by the meta device"
            )

    def run_node(self, n: Node) -> Any:
        """The result of a node, which is kept."""
        result = super().run_node(n)
        if n.op == "get_attr":
            result = _without_memory(result)
        n.meta["val"] = result
        return result

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """The result of a layer, whose parameters are taken without their memory."""
        from treadle import func

        layer = self.fetch_attr(target)
        state = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}
        return func.functional_call(layer, _without_memory(state), args, kwargs)

    def propagate(self, *args: Any) -> Any:
        """Run the graph on these arguments, of which only shapes and dtypes count."""
        return self.run(*_without_memory(args))

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Run the graph on arguments that are on the meta device already."""
        return self.run(*args)


__all__ = ["FakeTensorProp"]
