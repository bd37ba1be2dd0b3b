"""Sets and ranks of elements: membership, different slices, the commonest and the middle one."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

from ..sample import NUMPY_TYPES, Maker, Sample, samples

NONE = np.zeros((0,), dtype=np.int64)


def _few(make: Maker, shape: tuple[int, ...]) -> Any:
    """Few different values, so that most have equals."""
    x = make(shape)
    return np.asarray(np.round(x), dtype=NUMPY_TYPES[make.dtype]) if make.is_floating else x


def _selected(position: Callable[[Any], int]) -> Callable[..., Any]:
    """By slice along a dimension, the element at `position(slice)`, and that position."""

    def expect(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
        if x.ndim == 0:
            return x, np.zeros((), dtype=np.int64)
        rows = np.moveaxis(x, dim, -1)
        at = np.zeros((*rows.shape[:-1], 1), dtype=np.int64)
        for place in np.ndindex(*rows.shape[:-1]):
            at[place] = position(rows[place])
        at = np.moveaxis(at, -1, dim)
        values = np.take_along_axis(x, at, dim)
        return (values, at) if keepdim else (values.squeeze(dim), at.squeeze(dim))

    return expect


CALLS: tuple[tuple[tuple[int, ...], int, bool], ...] = (
    ((3, 4), -1, False),
    ((5, 3), 0, True),
    ((41,), 0, False),
    ((2, 3, 4), 1, True),
    ((2, 4, 3), -2, False),
    ((0, 3), 1, False),
    ((0, 3), -1, True),
    ((3, 1), 1, False),
    ((), 0, False),
    ((), -1, True),
)


@samples("mode")
def mode(make: Maker) -> Iterator[Sample]:
    def commonest(row: Any) -> int:
        values, counts = np.unique(row, return_counts=True, equal_nan=False)
        value = values[np.argmax(counts)]  # the first, and so the smallest, of the commonest
        return int(np.flatnonzero(row == value)[-1])

    expect = _selected(commonest)
    for shape, dim, keepdim in CALLS:
        # A change of an element would change which one is the commonest.
        yield Sample(_few(make, shape), dim, keepdim, grad=False, expect=expect)
    if make.dtype != "bool":
        x = np.array([[3, 1, 3, 2, 1], [4, 4, 2, 1, 0]], dtype=NUMPY_TYPES[make.dtype])
        yield Sample(x, grad=False, expect=expect)
    if make.is_floating:
        x = np.array([np.nan, 2, np.nan, 2, np.inf, np.nan], dtype=NUMPY_TYPES[make.dtype])
        yield Sample(x, 0, grad=False, expect=expect)
    # All different, far apart: the smallest.
    yield Sample(make.distinct((3, 5)), 1, grad=make.is_floating, expect=expect)


@samples("nanmedian.dim")
def nanmedian_dim(make: Maker) -> Iterator[Sample]:
    def middle(row: Any) -> int:
        count = int(np.count_nonzero(row == row))
        return int(np.argsort(row, kind="stable")[max(0, count - 1) // 2])

    expect = _selected(middle)
    for shape, dim, keepdim in CALLS:
        yield Sample(make.distinct(shape), dim, keepdim, expect=expect)
    if make.is_floating:
        x = make.distinct((4, 5))
        x[0, 1] = x[1, :3] = x[2, :] = np.nan
        x[3, 2] = -np.inf
        # Finite differences see nothing of a NaN.
        yield Sample(x, 1, grad=False, expect=expect)
        yield Sample(x, 0, True, grad=False, expect=expect)


@samples("nanmedian")
def nanmedian(make: Maker) -> Iterator[Sample]:
    def expect(x: Any) -> Any:
        numbers = np.sort(x[x == x])
        return numbers[(numbers.size - 1) // 2] if numbers.size else np.float64(np.nan)

    for shape in [(3, 4), (5,), (), (2, 1, 5)]:
        yield Sample(make.distinct(shape), expect=expect)
    if make.is_floating:
        x = make.distinct((3, 4))
        x[1:, ::2] = np.nan
        yield Sample(x, grad=False, expect=expect)
        yield Sample(np.full_like(x, np.nan), grad=False, expect=expect)
        yield Sample(make((0, 3)), grad=False, expect=expect)


def _bucket(x: Any, boundaries: Any, out_int32: bool = False, right: bool = False) -> Any:
    return np.searchsorted(boundaries, x, "right" if right else "left")


@samples("bucketize.Scalar")
def bucketize_number(make: Maker) -> Iterator[Sample]:
    line = np.sort(_few(make, (6,)))
    for x in (make.scalar(), 0, 1, 2.5, float("inf"), float("nan")):
        for right in (False, True):
            yield Sample(x, line, right=right, grad=False, expect=_bucket)
    yield Sample(1, line, out_int32=True, grad=False, expect=_bucket)
    yield Sample(1, make((0,)), right=True, grad=False, expect=_bucket)


def _isin(x: Any, test: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    return np.isin(x, test, invert=invert)


@samples("isin.Tensor_Tensor")
def isin(make: Maker) -> Iterator[Sample]:
    for shape, tests in [
        ((3, 4), (3,)),
        ((5,), (2, 2)),
        ((), (4,)),
        ((3, 2), ()),
        ((0, 3), (2,)),
        ((2, 3), (0,)),
        ((7,), (300,)),
    ]:
        for invert in (False, True):
            x, test = _few(make, shape), _few(make, tests)
            yield Sample(x, test, invert=invert, grad=False, expect=_isin)
    x, test = make.distinct((9,)), make.distinct((4,))
    if make.dtype == "bool":
        x, test = np.array([True, False]), np.array([True])
    yield Sample(x, test, assume_unique=True, grad=False, expect=_isin)
    if make.is_floating:
        x = np.array([np.nan, np.inf, 1], dtype=NUMPY_TYPES[make.dtype])
        yield Sample(x, x[::-1].copy(), grad=False, expect=_isin)
    if make.dtype == "int64":
        yield Sample(make((5,)), np.array([0.5, 1, 2]), invert=True, grad=False, expect=_isin)
        # A 0-dim tensor is compared in the dtype of the other.
        yield Sample(
            np.array([0.1], dtype=np.float32),
            np.asarray(0.1),
            grad=False,
            expect=lambda x, test: np.array([True]),
        )


@samples("isin.Tensor_Scalar")
def isin_number(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (), (0, 2)]:
        for number in (make.scalar(), 1, 0.5):
            for invert in (False, True):
                yield Sample(_few(make, shape), number, invert=invert, grad=False, expect=_isin)
    yield Sample(make((3,)), 0, assume_unique=True, grad=False, expect=_isin)


@samples("isin.Scalar_Tensor")
def number_isin(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (), (0, 2)]:
        for number in (make.scalar(), 1, 0.5):
            for invert in (False, True):
                yield Sample(number, _few(make, shape), invert=invert, grad=False, expect=_isin)
    yield Sample(1, make((3,)), assume_unique=True, grad=False, expect=_isin)
    if make.dtype in ("float32", "float64"):
        # A Python number is compared in the dtype of the tensor.
        yield Sample(
            0.1,
            np.array([0.1], dtype=NUMPY_TYPES[make.dtype]),
            grad=False,
            expect=lambda x, test: np.asarray(True),
        )


def _slices(x: Any, dim: int, inverse: bool, counts: bool) -> Any:
    values, i, c = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    return values, i.reshape(-1) if inverse else NONE, c if counts else NONE


@samples("unique_dim")
def unique_dim(make: Maker) -> Iterator[Sample]:
    def expect(
        x: Any, dim: int, _: bool = True, inverse: bool = False, counts: bool = False
    ) -> Any:
        return _slices(x, dim, inverse, counts)

    for shape, dim in [((6, 2), 0), ((2, 7), -1), ((2, 5, 1), 1), ((9,), 0), ((1, 3), 0)]:
        x = abs(_few(make, shape)) if make.dtype != "bool" else make(shape)
        yield Sample(x, dim, True, True, True, grad=False, expect=expect)
    yield Sample(_few(make, (4, 2)), 0, grad=False, expect=expect)
    yield Sample(_few(make, (4, 2)), 0, False, True, grad=False, expect=expect)
    yield Sample(_few(make, (4, 2)), 0, True, False, True, grad=False, expect=expect)
    # No slices at all.
    yield Sample(
        make((0, 3)), 0, True, True, True, grad=False, expect=lambda x, *_: (x, NONE, NONE)
    )
    if make.is_floating:
        x = np.array([[np.nan, 1], [0, 1], [np.nan, 1], [0, 1]], dtype=NUMPY_TYPES[make.dtype])
        # A NaN is its own slice, and comes last.
        yield Sample(
            x,
            0,
            True,
            True,
            True,
            grad=False,
            expect=lambda x, *_: (x[[1, 0, 2]], np.array([1, 0, 2, 0]), np.array([2, 1, 1])),
        )


def _runs(x: Any, inverse: bool, counts: bool, dim: Any) -> Any:
    slices = x.reshape(-1) if dim is None else np.moveaxis(x, dim, 0)
    width = (1,) if dim is None else (int(np.prod(slices.shape[1:])),)
    rows = slices.reshape(len(slices), *width)
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (rows[1:] != rows[:-1]).any(1)
    first = np.flatnonzero(new)
    values = slices[first] if dim is None else np.moveaxis(slices[first], 0, dim)
    number = np.cumsum(new) - 1
    lengths = np.diff(np.append(first, len(rows)))
    number = number.reshape(x.shape) if dim is None else number
    return values, number if inverse else NONE, lengths if counts else NONE


@samples("unique_consecutive")
def unique_consecutive(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, inverse: bool = False, counts: bool = False, dim: Any = None) -> Any:
        return _runs(x, inverse, counts, dim)

    for shape, dim in [
        ((30,), None),
        ((4, 5), None),
        ((), None),
        ((0, 3), None),
        ((9, 1), 0),
        ((2, 7), -1),
        ((2, 5, 1), 1),
        ((0, 3), 0),
    ]:
        yield Sample(_few(make, shape), True, True, dim, grad=False, expect=expect)
    yield Sample(_few(make, (9,)), grad=False, expect=expect)
    yield Sample(_few(make, (9,)), True, grad=False, expect=expect)
    yield Sample(_few(make, (9,)), False, True, grad=False, expect=expect)
    if make.is_floating:
        x = np.array([1, np.nan, np.nan, 1, 1], dtype=NUMPY_TYPES[make.dtype])
        yield Sample(x, True, True, grad=False, expect=expect)


@samples("unique_dim_consecutive")
def unique_dim_consecutive(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, dim: int, inverse: bool = False, counts: bool = False) -> Any:
        return _runs(x, inverse, counts, dim)

    for shape, dim in [((9, 1), 0), ((2, 7), -1), ((2, 5, 1), 1), ((20,), 0), ((0, 3), 0)]:
        yield Sample(_few(make, shape), dim, True, True, grad=False, expect=expect)
    yield Sample(_few(make, (9,)), 0, grad=False, expect=expect)
    yield Sample(_few(make, (9,)), 0, False, True, grad=False, expect=expect)
