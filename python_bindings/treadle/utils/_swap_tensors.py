"""swap_tensors: two tensors change places."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import weakref
from typing import Any

from treadle._C import Tensor


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Give each tensor what the other is: elements, size, dtype, gradient, class and attributes.

    Both must be leaves of the graph and have no weak references, or RuntimeError is raised.
    """
    pair = (t1, t2)
    for name, tensor in zip(("t1", "t2"), pair):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"swap_tensors: expected tensors, got {type(tensor).__name__}")
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"swap_tensors: expected no weak references to {name}, got some")
        if not tensor.is_leaf:
            raise RuntimeError(
                f"swap_tensors: expected leaves of the graph, got {name}, the result of an "
                "operation; detach() it first"
            )
    states = [_state(tensor) for tensor in pair]
    for tensor in pair:
        tensor.grad = None
        tensor.requires_grad_(False)
    for tensor, state in zip(pair, reversed(states)):
        _take(tensor, *state)


def _state(tensor: Tensor) -> tuple:
    return (
        tensor.data, tensor.requires_grad, tensor.grad, dict(tensor.__dict__), type(tensor),
    )  # fmt: skip


def _take(tensor: Any, data: Any, requires_grad: bool, grad: Any, own: dict, kind: type) -> None:
    tensor.data = data
    tensor.requires_grad_(requires_grad)
    tensor.grad = grad
    tensor.__dict__.clear()
    tensor.__dict__.update(own)
    if type(tensor) is not kind:
        tensor.__class__ = kind
