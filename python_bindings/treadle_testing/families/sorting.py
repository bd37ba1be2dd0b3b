"""Orders: sorting, selection, search."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ..sample import NUMPY_TYPES, Maker, Sample, samples

CALLS: tuple[tuple[tuple[int, ...], int, bool], ...] = (
    ((3, 4), -1, False),
    ((3, 4), 0, True),
    ((2, 5, 3), 1, False),
    ((40,), 0, True),
    ((0, 3), 1, False),
    ((3, 0), 1, True),
    ((), -1, False),
)


def _order(x: Any, dim: int, descending: bool) -> Any:
    """A stable order along dim, where NaN is the largest."""
    if x.ndim == 0:
        return np.zeros((), dtype=np.int64)
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    turned = np.flip(x, dim)
    # The last of equal elements comes first from behind: turning twice keeps the order of equal
    # ones.
    return x.shape[dim] - 1 - np.flip(np.argsort(turned, axis=dim, kind="stable"), dim)


def _sorted(x: Any, dim: int = -1, descending: bool = False, **_: Any) -> Any:
    order = _order(x, dim, descending)
    return (np.take_along_axis(x, order, dim) if x.ndim else x), order


def _ties(make: Maker, shape: tuple[int, ...]) -> Any:
    """Few different values, so that most have equals."""
    return (
        make(shape)
        if not make.is_floating
        else np.asarray(np.round(make(shape)), dtype=NUMPY_TYPES[make.dtype])
    )


@samples("sort")
def sort(make: Maker) -> Iterator[Sample]:
    for shape, dim, descending in CALLS:
        yield Sample(make.distinct(shape), dim, descending, expect=_sorted)
        yield Sample(_ties(make, shape), dim, descending, grad=False, expect=_sorted)
    yield Sample(make.distinct((3, 4)), expect=_sorted)
    yield Sample(_ties(make, (1500,)), grad=False, expect=_sorted)
    if make.dtype in ("float32", "float64"):
        x = make.distinct((7,))
        x[[1, 4]] = np.nan, -np.inf
        yield Sample(x, grad=False, expect=_sorted)


@samples("_sort_values")
def sort_values(make: Maker) -> Iterator[Sample]:
    expect = lambda x, *arguments: _sorted(x, *arguments)[0]
    for shape, dim, descending in CALLS:
        yield Sample(make.distinct(shape), dim, descending, expect=expect)
        yield Sample(_ties(make, shape), dim, descending, grad=False, expect=expect)
    yield Sample(make.distinct((1500,)), grad=False, expect=expect)
    if make.dtype in ("float32", "float64"):
        x = make.distinct((7,))
        x[[1, 4]] = np.nan, -np.inf
        yield Sample(x, grad=False, expect=expect)


@samples("msort")
def msort(make: Maker) -> Iterator[Sample]:
    for shape in ((3, 4), (5,), (0, 3), (2, 3, 2)):
        yield Sample(make.distinct(shape), expect=lambda x: np.sort(x, 0))


@samples("sort.stable")
def sort_stable(make: Maker) -> Iterator[Sample]:
    for shape, dim, descending in CALLS:
        yield Sample(
            _ties(make, shape),
            stable=True,
            dim=dim,
            descending=descending,
            grad=False,
            expect=lambda x, stable, **k: _sorted(x, **k),
        )
        yield Sample(
            make.distinct(shape),
            stable=True,
            dim=dim,
            descending=descending,
            expect=lambda x, stable, **k: _sorted(x, **k),
        )


@samples("argsort")
def argsort(make: Maker) -> Iterator[Sample]:
    for shape, dim, descending in CALLS:
        yield Sample(_ties(make, shape), dim, descending, grad=False, expect=_order)


@samples("argsort.stable")
def argsort_stable(make: Maker) -> Iterator[Sample]:
    for shape, dim, descending in CALLS:
        yield Sample(
            _ties(make, shape),
            stable=True,
            dim=dim,
            descending=descending,
            grad=False,
            expect=lambda x, stable, dim, descending: _order(x, dim, descending),
        )


@samples("topk")
def topk(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, k: int, dim: int = -1, largest: bool = True, *_: Any) -> Any:
        values, order = _sorted(x, dim, largest)
        cut = (slice(None),) * (dim % x.ndim) + (slice(k),)
        return values[cut], order[cut]

    for shape, k, dim, largest in [
        ((3, 4), 2, -1, True),
        ((4, 3), 3, 0, False),
        ((40,), 5, 0, True),
        ((3, 4), 4, 1, True),
        ((3, 4), 0, 1, False),
    ]:
        yield Sample(make.distinct(shape), k, dim, largest, expect=expect)
        yield Sample(_ties(make, shape), k, dim, largest, grad=False, expect=expect)
    yield Sample(make.distinct((3, 5)), 2, expect=expect)
    # Long enough that most elements are left out before any are sorted.
    for shape, k, dim, largest in [((150,), 5, 0, True), ((130, 2), 4, 0, False)]:
        for x in (make.distinct(shape), _ties(make, shape)):
            yield Sample(x, k, dim, largest, grad=False, expect=expect)


@samples("kthvalue")
def kthvalue(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
        values, order = (np.take(a, [k - 1], dim) for a in _sorted(x, dim))
        return (values, order) if keepdim else (values.squeeze(dim), order.squeeze(dim))

    for shape, k, dim, keepdim in [
        ((3, 4), 2, -1, False),
        ((4, 3), 4, 0, True),
        ((40,), 1, 0, False),
        ((2, 3, 4), 3, 1, True),
    ]:
        yield Sample(make.distinct(shape), k, dim, keepdim, expect=expect)


@samples("median.dim")
def median_dim(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, dim: int, keepdim: bool = False) -> Any:
        values, order = (np.take(a, [(x.shape[dim] - 1) // 2], dim) for a in _sorted(x, dim))
        return (values, order) if keepdim else (values.squeeze(dim), order.squeeze(dim))

    for shape, dim, keepdim in [
        ((3, 4), -1, False),
        ((5, 3), 0, True),
        ((41,), 0, False),
        ((2, 3, 4), 1, True),
    ]:
        yield Sample(make.distinct(shape), dim, keepdim, expect=expect)


@samples("median")
def median(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (5,), ()]:
        yield Sample(
            make.distinct(shape), expect=lambda x: np.sort(x.reshape(-1))[(x.size - 1) // 2]
        )


@samples("_unique2")
def unique2(make: Maker) -> Iterator[Sample]:
    none = np.zeros((0,), dtype=np.int64)

    def expect(x: Any, _: bool = True, inverse: bool = False, counts: bool = False) -> Any:
        values, i, c = np.unique(x, return_inverse=True, return_counts=True)
        return values, i.reshape(x.shape) if inverse else none, c if counts else none

    for shape in [(3, 4), (0,), (), (30,)]:
        yield Sample(_ties(make, shape), True, True, True, grad=False, expect=expect)
    yield Sample(_ties(make, (5,)), grad=False, expect=expect)


@samples("searchsorted.Tensor")
def searchsorted(make: Maker) -> Iterator[Sample]:
    def expect(
        rows: Any, x: Any, right: bool = False, side: Any = None, out_int32: bool = False
    ) -> Any:
        side = side or ("right" if right else "left")
        if rows.ndim == 1:
            return np.searchsorted(rows, x, side)
        return np.stack(
            [
                np.searchsorted(r, v, side)
                for r, v in zip(rows.reshape(-1, rows.shape[-1]), x.reshape(-1, x.shape[-1]))
            ]
        ).reshape(x.shape)

    rows = np.sort(_ties(make, (2, 5)), -1)
    line = np.sort(_ties(make, (6,)))
    for right in (False, True):
        yield Sample(rows, _ties(make, (2, 3)), right=right, grad=False, expect=expect)
        yield Sample(line, _ties(make, (2, 3)), right=right, grad=False, expect=expect)
    yield Sample(line, _ties(make, ()), side="right", out_int32=True, grad=False, expect=expect)
    yield Sample(line, _ties(make, (0,)), grad=False, expect=expect)


@samples("searchsorted.Scalar")
def searchsorted_scalar(make: Maker) -> Iterator[Sample]:
    yield Sample(
        np.sort(make((6,))), make.scalar(), grad=False, expect=lambda r, x: np.searchsorted(r, x)
    )


@samples("bucketize.Tensor")
def bucketize(make: Maker) -> Iterator[Sample]:
    line = np.sort(_ties(make, (6,)))
    for shape, right in [((3, 4), False), ((3,), True), ((), False)]:
        yield Sample(
            _ties(make, shape),
            line,
            right=right,
            grad=False,
            expect=lambda x, b, right: np.searchsorted(b, x, "right" if right else "left"),
        )
