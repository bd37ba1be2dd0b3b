"""Sizes of the nodes of a graph, and nodes made to call something else."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Union

from treadle._C import Tensor
from treadle.fx.graph_module import GraphModule
from treadle.fx.node import Node, map_arg
from treadle.fx.passes.shape_prop import ShapeProp, TensorMetadata

Target = Union[Callable[..., Any], str]


class size_bytes(NamedTuple):  # noqa: N801
    """How many bytes the result of a node has, and that with the parameters of its module."""

    output_size: int
    total_size: int


def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Target, new_op: str, new_target: Target
) -> None:
    """Have all nodes of one op and target do another op with another target."""
    from treadle import fx

    made = fx.Graph()
    values: dict = {}
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args, kwargs = (map_arg(a, values.__getitem__) for a in (node.args, node.kwargs))
            values[node] = made.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            values[node] = made.node_copy(node, values.__getitem__)
    fx_module.graph = made


def get_tensor_meta(node: Node) -> TensorMetadata:
    """The shape and dtype that ShapeProp found. RuntimeError where it has not run."""
    found = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(
            f"get_tensor_meta: expected ShapeProp to have been run, got {node} without shapes"
        )
    return found


def _bytes_of(meta: TensorMetadata) -> int:
    return meta.shape.numel() * meta.dtype.itemsize


def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """The size of a node, for which ShapeProp has been run."""
    kept = 0
    if node.op == "call_module":
        module = fx_module.get_submodule(node.target)
        kept = sum(p.numel() * p.element_size() for p in module.parameters())
    output = _bytes_of(get_tensor_meta(node))
    return size_bytes(output, kept + output)


def get_size_of_all_nodes(fx_module: GraphModule, args: Optional[List[Tensor]] = None) -> None:
    """Give each node its size as `node.size_bytes`. ShapeProp is run on `args`, if there are."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op == "output":
            break
        node.size_bytes = get_size_of_node(fx_module, node)  # type: ignore[attr-defined]


__all__ = [
    "get_size_of_all_nodes",
    "get_size_of_node",
    "get_tensor_meta",
    "replace_target_nodes_with",
    "size_bytes",
]
