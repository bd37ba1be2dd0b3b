"""Buckets of DistributedDataParallel: which parameters' gradients are reduced together, and the
memory in which they lie one after the other.

    assign(parameters, [1 << 20, 25 << 20], sparse=set())      # [[0, 1, 2], [3, 4]]
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from treadle import _C
from treadle._C import Tensor

MEBIBYTE = 1 << 20
DEFAULT_CAP = 25 * MEBIBYTE
DEFAULT_FIRST_CAP = MEBIBYTE


def caps_of(
    megabytes: Optional[float], of_each: Optional[Sequence[float]]
) -> Tuple[List[int], List[int]]:
    """The bytes after which a bucket is full, the last for all that follow: before the order of
    gradients is known, and after."""
    if of_each:
        caps = [int(each * MEBIBYTE) for each in of_each]
        return caps, caps
    if megabytes is None:
        return [DEFAULT_FIRST_CAP, DEFAULT_CAP], [DEFAULT_FIRST_CAP, DEFAULT_CAP]
    cap = int(megabytes * MEBIBYTE)
    return [cap], [cap]


def assign(
    parameters: Sequence[Tensor], order: Sequence[int], caps: Sequence[int], sparse: Set[int]
) -> List[List[int]]:
    """The indices in `order`, divided: a bucket has one dtype and one device, and is full as soon
    as it has the bytes of its cap. A sparse gradient has a bucket of its own."""
    done: List[List[int]] = []
    open_ones: Dict[Any, List[int]] = {}
    sizes: Dict[Any, int] = {}
    caps_left: Dict[Any, List[int]] = {}
    for index in order:
        parameter = parameters[index]
        if index in sparse:
            done.append([index])
            continue
        key = (parameter.dtype, parameter.device)
        open_ones.setdefault(key, []).append(index)
        sizes[key] = sizes.get(key, 0) + parameter.numel() * parameter.element_size()
        left = caps_left.setdefault(key, list(caps))
        if sizes[key] >= left[0]:
            done.append(open_ones.pop(key))
            sizes[key] = 0
            if len(left) > 1:
                left.pop(0)
    return done + list(open_ones.values())


def _strides_in_bucket(parameter: Tensor) -> Tuple[int, ...]:
    """The parameter's own strides if its elements lie side by side, else contiguous ones."""
    expected = 1
    for stride, size in sorted(zip(parameter.stride(), parameter.shape)):
        if size > 1 and stride != expected:
            return _C.empty(parameter.shape, device="meta").stride()
        expected *= size
    return parameter.stride()


class Bucket:
    """Parameters of one dtype, and the tensor that holds their gradients."""

    def __init__(
        self,
        indices: Sequence[int],
        parameters: Sequence[Tensor],
        names: Sequence[str],
        sparse: bool,
    ) -> None:
        self.indices = list(indices)
        self.names = [names[index] for index in indices]
        self.parameters = [parameters[index] for index in indices]
        self.is_sparse = sparse
        self.flat: Optional[Tensor] = None
        self.views: List[Tensor] = []
        self.waiting = 0
        self.work: Any = None
        self.future: Any = None

    def allocate(self) -> None:
        """Make the memory, unless it is there."""
        if self.flat is not None or self.is_sparse:
            return
        first = self.parameters[0]
        sizes = [parameter.numel() for parameter in self.parameters]
        self.flat = _C.zeros(sum(sizes), dtype=first.dtype, device=first.device)
        self.views, start = [], 0
        for parameter, size in zip(self.parameters, sizes):
            strides = _strides_in_bucket(parameter)
            self.views.append(self.flat.as_strided(parameter.shape, strides, start))
            start += size

    def release(self) -> None:
        """Give the memory back. It stays where gradients are views of it."""
        self.flat, self.views = None, []

    def take(self, slot: int, scale: float, as_views: bool) -> None:
        """Copy a gradient to its place, multiplied with `scale`. With `as_views` it is the
        parameter's gradient from now on."""
        self.allocate()
        parameter, view = self.parameters[slot], self.views[slot]
        grad = parameter.grad
        if grad is None:
            view.zero_()
            return
        _check(self.names[slot], grad)
        if is_view(grad, view):
            if scale != 1.0:
                view.mul_(scale)
            return
        if scale == 1.0:
            view.copy_(grad.detach())
        else:
            _C.mul(grad.detach(), scale, out=view)
        if as_views:
            parameter.grad = view

    def take_all(self, scale: float, as_views: bool) -> None:
        """take() of all gradients, with one copy for all of them."""
        self.allocate()
        assert self.flat is not None
        views, grads = [], []
        for name, parameter, view in zip(self.names, self.parameters, self.views):
            grad = parameter.grad
            if grad is None:
                view.zero_()
                continue
            _check(name, grad)
            if not is_view(grad, view):
                views.append(view)
                grads.append(grad.detach())
                if as_views:
                    parameter.grad = view
        if views:
            _C._foreach_copy_(views, grads)
        if scale != 1.0:
            self.flat.mul_(scale)

    def give(self, left_out: Set[int], as_views: bool, together: bool) -> None:
        """Write what is in the bucket to the gradients; those of the indices `left_out` stay."""
        to, values = [], []
        for index, parameter, view in zip(self.indices, self.parameters, self.views):
            grad = parameter.grad
            if index in left_out or is_view(grad, view):
                continue
            if as_views:
                parameter.grad = view
            elif grad is None:
                parameter.grad = _C.empty_like(view).copy_(view)
            elif together:
                to.append(grad.detach())
                values.append(view)
            else:
                grad.detach().copy_(view)
        if to:
            _C._foreach_copy_(to, values)

    def bytes(self) -> int:
        """The bytes of all gradients."""
        return sum(p.numel() * p.element_size() for p in self.parameters)


def is_view(grad: Optional[Tensor], view: Tensor) -> bool:
    """Whether a gradient lies in the bucket already."""
    return (
        grad is not None
        and not grad.is_sparse
        and grad.data_ptr() == view.data_ptr()
        and grad.stride() == view.stride()
    )


def _check(name: str, grad: Tensor) -> None:
    if grad.is_sparse:
        raise RuntimeError(
            f"DistributedDataParallel: expected a dense gradient of {name}, got a sparse one, "
            "which only the weights of Embedding and EmbeddingBag may have"
        )
    if grad.requires_grad:
        warnings.warn(
            "DistributedDataParallel: expected create_graph=False, got a gradient with a graph of "
            "its own: higher derivatives are not averaged over the processes",
            stacklevel=2,
        )
