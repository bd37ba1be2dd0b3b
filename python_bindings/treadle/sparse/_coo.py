"""Coordinates: what a sparse tensor's indices say, as computations on plain tensors.

Indices are int64 of shape (sparse dims, nnz). The key of an entry is its place in the sparse
dimensions laid out one after the other, so that entries compare and group by one number.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.functional import unique as _unique


def keys(indices: Tensor, sizes: Sequence[int]) -> Tensor:
    """The key of each entry, (nnz,)."""
    total = _C.zeros(indices.shape[1], dtype=_C.int64, device=indices.device)
    for coordinates, size in zip(indices, sizes):
        total = total * size + coordinates
    return total


def indices_of(keys: Tensor, sizes: Sequence[int]) -> Tensor:
    """The indices of entries with these keys: the inverse of keys()."""
    rows = []
    for size in reversed(sizes):
        rows.append(keys.remainder(max(size, 1)))
        keys = keys.div(max(size, 1), rounding_mode="floor")
    if not rows:
        return _C.zeros((0, keys.shape[0]), dtype=_C.int64, device=keys.device)
    return _C.stack(rows[::-1])


def grouped(values: Tensor, groups: Tensor, count: int) -> Tensor:
    """Sums of values (nnz, ...) over each group, (count, ...)."""
    return values.new_zeros((count, *values.shape[1:])).index_add(0, groups, values)


def coalesced(indices: Tensor, values: Tensor, sizes: Sequence[int]) -> Tuple[Tensor, Tensor]:
    """Entries in the order of their keys, one for each key: the sum of those that have it."""
    unique, groups = _unique(keys(indices, sizes), return_inverse=True)
    return indices_of(unique, sizes), grouped(values, groups, unique.shape[0])


def picked(dense: Tensor, indices: Tensor) -> Tensor:
    """The parts of a strided tensor at the indices, (nnz, *dense dims)."""
    if indices.shape[0] == 0:
        return dense.unsqueeze(0).expand(indices.shape[1], *dense.shape)
    return dense[tuple(indices.unbind(0))]


def added(dense: Tensor, indices: Tensor, values: Tensor) -> Tensor:
    """A strided tensor with values added to its parts at the indices."""
    sizes = tuple(dense.shape[: indices.shape[0]])
    parts = dense.reshape(math.prod(sizes), *dense.shape[indices.shape[0] :])
    return parts.index_add(0, keys(indices, sizes), values).reshape(dense.shape)


def matches(wanted: Tensor, present: Tensor, count: int) -> Tuple[Tensor, Tensor]:
    """All pairs of places (i, j) with wanted[i] == present[j], in the order of i; numbers are
    in [0, count)."""
    order = present.argsort(stable=True)
    counts = _C.bincount(present, minlength=count)
    starts = counts.cumsum(0) - counts
    many = counts.index_select(0, wanted)
    left = _C.repeat_interleave(_C.arange(wanted.shape[0], device=wanted.device), many)
    first = starts.index_select(0, wanted) - (many.cumsum(0) - many)
    place = first.index_select(0, left) + _C.arange(left.shape[0], device=wanted.device)
    return left, order.index_select(0, place)


def common(a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor]:
    """The places of the keys that two sorted lists without repetitions share, in each of them."""
    if a.shape[0] == 0 or b.shape[0] == 0:
        none = a.new_zeros((0,))
        return none, none
    place = _C.searchsorted(b, a).clamp(max=b.shape[0] - 1)
    left = (b.index_select(0, place) == a).nonzero().reshape(-1)
    return left, place.index_select(0, left)
