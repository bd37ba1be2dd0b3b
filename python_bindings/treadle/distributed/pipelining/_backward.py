"""The backward pass of a stage in one part, or in two: inputs first, weights later.

The two parts meet at the nodes of the graph whose operands are both on the way to an input and on
the way to a parameter, as the node of `input @ weight`. The first part keeps the gradients of the
outputs of these nodes; the second begins there.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from treadle import autograd
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.autograd.graph import GradientEdge, get_gradient_edge

Gradients = List[Optional[Tensor]]


class Later(NamedTuple):
    """What the part of the weights takes: for each group of parameters the edges, and their
    gradients, from which they are reached."""

    groups: List[Tuple[List[Any], List[Tensor], List[Tensor]]]


def _needing(outputs: Sequence[Tensor], grads: Optional[Sequence[Any]]) -> Tuple[list, list]:
    """The outputs that have a gradient, and their gradients."""
    given = [None] * len(outputs) if grads is None else grads
    pairs = [(out, grad) for out, grad in zip(outputs, given) if out.requires_grad]
    return [out for out, _ in pairs], [grad for _, grad in pairs]


def whole(
    outputs: Sequence[Tensor], grads: Optional[Sequence[Any]], inputs: Sequence[Tensor]
) -> Gradients:
    """Add to the gradients of the parameters; returns those of the inputs, None for one that was
    not reached or needs none. `grads` is None where the output is a loss."""
    roots, weights = _needing(outputs, grads)
    if roots:
        autograd.backward(roots, weights)
    return [tensor.grad if tensor.requires_grad else None for tensor in inputs]


def of_inputs(
    outputs: Sequence[Tensor],
    grads: Optional[Sequence[Any]],
    inputs: Sequence[Tensor],
    parameters: Sequence[Tensor],
) -> Tuple[Gradients, Later]:
    """The gradients of the inputs, and what of_weights() needs for those of the parameters."""
    roots, weights = _needing(outputs, grads)
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    plain = Later([(roots, weights, trained)])
    if not roots or not wanted:
        return [None] * len(inputs), plain
    groups = _groups(roots, wanted, trained)
    edges = [] if groups is None else [edge for group, _ in groups for edge in group]
    found = autograd.grad(roots, [*wanted, *edges], weights, retain_graph=True, allow_unused=True)
    by_input = iter(found[: len(wanted)])
    result = [next(by_input) if tensor.requires_grad else None for tensor in inputs]
    if groups is None:
        return result, plain
    at = {edge[:2]: gradient for edge, gradient in zip(edges, found[len(wanted) :])}
    later = []
    for group, members in groups:
        reached = [edge for edge in group if at[edge[:2]] is not None]
        if reached:
            later.append((reached, [at[edge[:2]] for edge in reached], members))
    return result, Later(later)


def of_weights(later: Later) -> None:
    """Add to the gradients of the parameters what of_inputs() left."""
    for roots, weights, parameters in later.groups:
        if not roots or not parameters:
            continue
        found = autograd.grad(roots, parameters, weights, retain_graph=True, allow_unused=True)
        with no_grad():
            for parameter, gradient in zip(parameters, found):
                if gradient is None:
                    continue
                if parameter.grad is None:
                    parameter.grad = gradient
                else:
                    parameter.grad.add_(gradient)


def _groups(
    roots: Sequence[Tensor], inputs: Sequence[Tensor], parameters: Sequence[Tensor]
) -> Optional[List[Tuple[List[GradientEdge], List[Tensor]]]]:
    """For each node that both an input and parameters are below of, the edges that lead to it, and
    those parameters. None where a parameter is below two such nodes: its gradient would be counted
    twice."""
    leaves = {get_gradient_edge(p).node: p for p in parameters}
    goals = {get_gradient_edge(tensor).node for tensor in inputs}
    children, order = _walk([get_gradient_edge(root) for root in roots])
    above: Set[Any] = set()  # the nodes that lead to an input
    below: Dict[Any, Set[Any]] = {}  # for the others, the leaves of parameters that they lead to
    for node in order:
        if node in goals or any(child in above for child, _ in children[node]):
            above.add(node)
        else:
            reached = {node} & set(leaves)
            below[node] = reached.union(*(below[child] for child, _ in children[node]))
    entries: Dict[Any, List[GradientEdge]] = {}
    starts = [(edge.node, edge.output_nr) for edge in map(get_gradient_edge, roots)]
    for node, number in [*starts, *(pair for parent in order for pair in children[parent])]:
        edge = GradientEdge(node, number)
        if edge not in entries.setdefault(node, []):
            entries[node].append(edge)
    groups: List[Tuple[List[GradientEdge], List[Tensor]]] = []
    taken: Set[Any] = set()
    for node in order:
        found: Set[Any] = set()
        if node in above:
            found = found.union(*(below[c] for c, _ in children[node] if c not in above))
        elif any(node is start for start, _ in starts):
            found = below[node]  # an output that no input leads to
        if not found:
            continue
        if found & taken:
            return None
        taken |= found
        groups.append((entries[node], [leaves[leaf] for leaf in found]))
    return groups


def _walk(starts: Sequence[GradientEdge]) -> Tuple[Dict[Any, List[Tuple[Any, int]]], List[Any]]:
    """The nodes below, children before parents, and the children of each with their outputs."""
    children: Dict[Any, List[Tuple[Any, int]]] = {}
    order: List[Any] = []
    stack: List[Tuple[Any, bool]] = [(edge.node, False) for edge in starts]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
        elif node not in children:
            children[node] = [pair for pair in node.next_functions if pair[0] is not None]
            stack.append((node, True))
            stack += [(child, False) for child, _ in children[node]]
    return children, order
