"""Edges of the graph as values: they stand for tensors in backward() and grad(), without keeping
their elements alive.

    edge = get_gradient_edge(y)
    treadle.autograd.grad(loss, edge)           # d loss / d y
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

from treadle import _C


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes: output number `output_nr` of `node`."""

    node: _C.Node
    output_nr: int
    ownership_token: Optional[_C.Node] = None


def get_gradient_edge(tensor: _C.Tensor) -> GradientEdge:
    """The edge that the gradient of `tensor` goes along; RuntimeError for one that has none."""
    return GradientEdge(*_C._gradient_edge(tensor))


def any_edge(*lists: Tuple[Any, ...]) -> bool:
    """Whether any of the tensors is given as an edge."""
    return any(isinstance(item, GradientEdge) for items in lists for item in items)


def run(
    op: str,
    roots: Tuple[Any, ...],
    gradients: Tuple[Any, ...],
    wanted: Tuple[Any, ...],
    keep_graph: bool,
    create_graph: bool,
    accumulate: bool,
) -> Tuple[Any, ...]:
    """Backward from tensors or edges to tensors or edges: the gradients of `wanted`, None for one
    that is not reached or whose leaf has taken it (`accumulate`)."""
    edges = (
        tuple(x if isinstance(x, GradientEdge) else get_gradient_edge(x) for x in items)
        for items in (roots, wanted)
    )
    starts, ends = edges
    return _C._backward_edges(op, starts, gradients, ends, keep_graph, create_graph, accumulate)
