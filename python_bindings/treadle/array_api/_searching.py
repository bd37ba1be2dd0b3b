"""Positions, order and sets of values."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
from typing import NamedTuple, Optional, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.array_api._dtypes import Array, together

__all__ = [
    "argmax", "argmin", "argsort", "isin", "nonzero", "searchsorted", "sort", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "where",
]  # fmt: skip


def argmax(x: Tensor, /, *, axis: Optional[int] = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the largest element is; the first of equal ones."""
    return _C.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: Optional[int] = None, keepdims: builtins.bool = False) -> Tensor:
    """Where the smallest element is; the first of equal ones."""
    return _C.argmin(x, axis, keepdims)


def nonzero(x: Tensor, /) -> Tuple[Tensor, ...]:
    """Where the elements are that are not zero: positions along each dimension."""
    if x.ndim == 0:
        raise ValueError("nonzero: expected at least 1 dimension, got a 0-dim array")
    return tuple(_C.nonzero_numpy(x))


def isin(x1: Array, x2: Array, /, *, invert: builtins.bool = False) -> Tensor:
    """Whether each element of `x1` is one of `x2`; with invert=True, whether it is none."""
    return _C.isin(*together("isin", x1, x2), invert=invert)


def searchsorted(
    x1: Tensor, x2: Array, /, *, side: str = "left", sorter: Optional[Tensor] = None
) -> Tensor:
    """Where in sorted `x1` the values `x2` belong: before equal ones, with side="right" after."""
    sequence, values = together("searchsorted", x1, x2)
    return _C.searchsorted(sequence, values, side=side, sorter=sorter)


def where(condition: Tensor, x1: Array, x2: Array, /) -> Tensor:
    """`x1` where the condition holds, else `x2`."""
    return _C.where(condition, *together("where", x1, x2))


def sort(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    descending: builtins.bool = False,
    stable: builtins.bool = True,
) -> Tensor:
    """The elements in order along `axis`."""
    return _C.sort(x, dim=axis, descending=descending, stable=stable)[0]


def argsort(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    descending: builtins.bool = False,
    stable: builtins.bool = True,
) -> Tensor:
    """Where the elements come from when they are put in order along `axis`."""
    return _C.argsort(x, dim=axis, descending=descending, stable=stable)


class unique_all_result(NamedTuple):
    """The result of unique_all."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class unique_counts_result(NamedTuple):
    """The result of unique_counts."""

    values: Tensor
    counts: Tensor


class unique_inverse_result(NamedTuple):
    """The result of unique_inverse."""

    values: Tensor
    inverse_indices: Tensor


def _order(flat: Tensor) -> Tensor:
    """A stable order; complex numbers by their real parts, then their imaginary ones."""
    if not flat.dtype.is_complex:
        return _C.argsort(flat, stable=True)
    minor = _C.argsort(flat.imag, stable=True)
    return minor[_C.argsort(flat.real[minor], stable=True)]


def unique_all(x: Tensor, /) -> unique_all_result:
    """The different values in order, where each is first, where each element went, the counts.

    No NaN equals another, so that each of them is a value of its own.
    """
    flat = _C.flatten(x)
    order = _order(flat)
    ordered = flat[order]
    starts = _C.ones(flat.shape, dtype=_C.bool, device=x.device)
    starts[1:] = ordered[1:] != ordered[:-1]
    places = _C.flatten(_C.nonzero(starts))
    inverse = _C.empty_like(order)
    inverse[order] = _C.cumsum(starts, 0) - 1
    ends = _C.cat([places[1:], _C.full((1,), flat.numel(), dtype=_C.int64)])[: places.numel()]
    return unique_all_result(
        ordered[places], order[places], _C.reshape(inverse, x.shape), ends - places
    )


def unique_counts(x: Tensor, /) -> unique_counts_result:
    """The different values in order, and how many there are of each."""
    result = unique_all(x)
    return unique_counts_result(result.values, result.counts)


def unique_inverse(x: Tensor, /) -> unique_inverse_result:
    """The different values in order, and where each element went."""
    result = unique_all(x)
    return unique_inverse_result(result.values, result.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """The different values in order."""
    return unique_all(x).values
