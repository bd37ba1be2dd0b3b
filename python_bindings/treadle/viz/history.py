"""How a tensor came to be: the operators and leaves that autograd remembers, as a list.

Each comes after all that it was made of, so a walk along the list meets inputs before outputs.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Optional

from treadle._C import Tensor


class Step(NamedTuple):
    """An operator, or a leaf: a tensor that was not computed."""

    name: str  # of the operator, or of the leaf
    kind: str  # "operator", "parameter" or "leaf"
    inputs: tuple[int, ...]  # the steps it was made of, by their places in the list
    shape: Optional[tuple[int, ...]]  # of what it gives; None where that is several tensors
    dtype: str
    sequence_nr: int  # operators that ran later have a larger one


def named_tensors(params: Any) -> dict[int, str]:
    """Names by the identity of tensors, from a network, a mapping, or pairs."""
    from treadle import nn

    if params is None:
        return {}
    if isinstance(params, nn.Module):
        pairs: Iterable = [*params.named_parameters(), *params.named_buffers()]
    elif isinstance(params, Mapping):
        pairs = params.items()
    else:
        pairs = params
    names = {}
    for name, tensor in pairs:
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"graph: expected tensors with names, got {type(tensor).__name__} as {name!r}"
            )
        names[id(tensor)] = str(name)
    return names


def steps_of(tensor: Tensor, names: Mapping[int, str]) -> list[Step]:
    """The steps that led to `tensor`, itself last. Leaves without a name have none."""
    if tensor.grad_fn is None:
        return [_leaf(tensor, names)]
    steps: list[Step] = []
    place: dict[Any, int] = {}
    waiting = [tensor.grad_fn]
    while waiting:
        node = waiting[-1]
        if node in place:
            waiting.pop()
            continue
        before = [function for function, _ in node.next_functions if function is not None]
        missing = [function for function in before if function not in place]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        place[node] = len(steps)
        if node.name() == "AccumulateGrad":
            steps.append(_leaf(node.variable, names))
        else:
            steps.append(_operator(node, [place[function] for function in before]))
    return steps


def _leaf(tensor: Tensor, names: Mapping[int, str]) -> Step:
    from treadle import nn

    kind = "parameter" if isinstance(tensor, nn.Parameter) else "leaf"
    dtype = str(tensor.dtype).rpartition(".")[2]
    return Step(names.get(id(tensor), ""), kind, (), tuple(tensor.shape), dtype, 0)


def _operator(node: Any, inputs: list[int]) -> Step:
    outputs = node._input_metadata  # what comes in on the way back went out on the way here
    shape = tuple(outputs[0].shape) if len(outputs) == 1 else None
    dtype = str(outputs[0].dtype).rpartition(".")[2] if outputs else ""
    name = node.name().rstrip("0123456789").removesuffix("Backward")
    return Step(name, "operator", tuple(inputs), shape, dtype, node._sequence_nr())
