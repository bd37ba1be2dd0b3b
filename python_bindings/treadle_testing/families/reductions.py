"""Reductions: of everything, over one dimension, over several."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

import treadle

from ..sample import Maker, Sample, samples

# The last is more than one block of a reduction in parallel.
WHOLE: tuple[tuple[int, ...], ...] = ((3, 4), (), (0, 4), (67,), (2, 1, 5), (300, 231))
ONE: tuple[tuple[Any, ...], ...] = (
    ((3, 4), 0),
    ((3, 4), -1, True),
    ((2, 3, 4), 1),
    ((0, 4), 0),
    ((0, 4), 1),
    ((), 0),
    ((), -1, True),
    ((5, 40), 0),
    ((5, 40), 1),
)
SEVERAL: tuple[tuple[Any, ...], ...] = (
    ((3, 4), [0]),
    ((3, 4), [-1], True),
    ((2, 3, 4), [0, 2]),
    ((2, 3, 4), [-2, -1], True),
    ((2, 3, 4), [0, 1, 2]),
    ((3, 4), []),
    ((3, 4), [], True),
    ((0, 4), [0]),
    ((0, 4), [1]),
    ((), [0]),
    ((5, 40), [0]),
    ((5, 40), [1], True),
    ((500, 150), [0]),
    ((500, 150), [1]),
)


def _over(reference: Callable[..., Any]) -> Callable[..., Any]:
    """The reference with NumPy's names; no dimension stands for all."""

    def expect(x: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
        axis = (
            None
            if dim is None or dim == [] or x.ndim == 0
            else tuple(dim)
            if isinstance(dim, list)
            else dim
        )
        return reference(x, axis=axis, keepdims=keepdim)

    return expect


def _of(
    reference: Callable[..., Any], calls: Any, values: str = "any", filled: bool = False
) -> Callable[[Maker], Iterator[Sample]]:
    """Samples of a reduction. `filled`: it has no result for no elements."""

    def make_samples(make: Maker) -> Iterator[Sample]:
        for call in calls:
            shape, *rest = call if isinstance(call[0] if call else None, tuple) else (call,)
            empty = 0 in (
                shape
                if not rest or rest[0] == []
                else [shape[d] for d in np.atleast_1d(rest[0])]
                if shape
                else []
            )
            if filled and empty:
                continue
            size = int(np.prod(shape))
            if size > 1000 and make.dtype not in ("float32", "int64", "bool"):
                continue
            x = (
                make.distinct(shape)
                if values == "distinct" and size < 200
                else make(shape, 0.5, 1.5)
                if values == "positive"
                else make(shape)
            )
            # Float16 keeps 11 bits of a sum that float32 made.
            yield Sample(
                x,
                *rest,
                expect=_over(reference),
                loose=4 if size < 1000 else 50,
                grad=0 < size < 100,
            )

    return make_samples


def _wide(x: Any) -> Any:
    return x.astype(np.int64) if x.dtype.kind in "biu" else x


def _sum(x: Any, **where: Any) -> Any:
    return _wide(x).sum(**where)


def _mean(x: Any, **where: Any) -> Any:
    return x.sum(**where) / np.ones_like(x, dtype=np.float64).sum(**where)


def _prod(x: Any, **where: Any) -> Any:
    return _wide(x).prod(**where)


def _truth(reference: Callable[..., Any]) -> Callable[..., Any]:
    # The result for uint8 is uint8.
    return lambda x, **where: np.asarray(reference(x, **where)).astype(
        np.uint8 if x.dtype == np.uint8 else bool
    )


def _truths(reference: Callable[..., Any]) -> Callable[[Maker], Iterator[Sample]]:
    """Samples over several dimensions; where none is named, each element is asked alone."""

    def make_samples(make: Maker) -> Iterator[Sample]:
        named = [call for call in SEVERAL if call[1] != []]
        yield from _of(_truth(reference), named)(make)
        for shape in [(3, 4), (), (0, 4)]:
            for keepdim in (False, True):
                yield Sample(
                    make(shape), [], keepdim, expect=lambda x, *_: _truth(reference)(x, axis=())
                )

    return make_samples


samples("sum")(_of(_sum, WHOLE))
samples("mean")(_of(_mean, WHOLE))
samples("mean.dim")(_of(_mean, SEVERAL))
samples("prod.dim_int")(_of(_prod, ONE, "positive"))
samples("amax")(_of(np.max, SEVERAL, "distinct", filled=True))
samples("amin")(_of(np.min, SEVERAL, "distinct", filled=True))
samples("any")(_of(_truth(np.any), WHOLE))
samples("any.dim")(_of(_truth(np.any), ONE))
samples("any.dims")(_truths(np.any))
samples("all")(_of(_truth(np.all), WHOLE))
samples("all.dim")(_of(_truth(np.all), ONE))
samples("all.dims")(_truths(np.all))
samples("max")(_of(np.max, WHOLE, "distinct", filled=True))
samples("min")(_of(np.min, WHOLE, "distinct", filled=True))


@samples("sum.dim_IntList")
def sum_dim(make: Maker) -> Iterator[Sample]:
    yield from _of(_sum, SEVERAL)(make)
    yield Sample(make((3, 4)), None, True, expect=_over(_sum), loose=4)
    if make.dtype in ("int32", "bool"):
        yield Sample(
            make((3, 4)),
            [0],
            dtype=treadle.float64,
            expect=lambda x, d, dtype: x.astype(np.float64).sum(0),
        )


@samples("_sum_of_squares")
def sum_of_squares(make: Maker) -> Iterator[Sample]:
    yield from _of(lambda x, **over: _sum(_wide(x) ** 2, **over), SEVERAL)(make)


@samples("_sum_of_magnitudes")
def sum_of_magnitudes(make: Maker) -> Iterator[Sample]:
    yield from _of(lambda x, **over: _sum(np.abs(x), **over), SEVERAL)(make)


@samples("prod")
def prod(make: Maker) -> Iterator[Sample]:
    yield from _of(_prod, [s for s in WHOLE if int(np.prod(s)) < 100], "positive")(make)
    # The gradient is that of the other factors, zeros among them.
    for zeros in (1, 2):
        x = make((5,), 0.5, 1.5)
        x[:zeros] = 0
        yield Sample(x, expect=lambda x: _wide(x).prod())


@samples("max.other")
def max_other(make: Maker) -> Iterator[Sample]:
    for a, b in [((3, 4), (4,)), ((), ()), ((0, 4), (4,))]:
        yield Sample(make(a), make(b), expect=np.maximum)


@samples("min.other")
def min_other(make: Maker) -> Iterator[Sample]:
    for a, b in [((3, 4), (4,)), ((), ()), ((0, 4), (4,))]:
        yield Sample(make(a), make(b), expect=np.minimum)


@samples("aminmax")
def aminmax(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return np.min(x, axis=dim, keepdims=keepdim), np.max(x, axis=dim, keepdims=keepdim)

    yield Sample(make.distinct((3, 4)), expect=expect)
    for dim, keepdim in [(0, False), (-1, True)]:
        yield Sample(make.distinct((3, 4)), dim=dim, keepdim=keepdim, expect=expect)


@samples("nansum")
def nansum(make: Maker) -> Iterator[Sample]:
    for call in SEVERAL[:6]:
        x = make(call[0])
        if make.is_floating and x.size:
            x.reshape(-1)[0] = np.nan
        # Finite differences see nothing of a NaN.
        yield Sample(x, *call[1:], expect=_over(np.nansum), loose=4, grad=False)
    yield Sample(make((3, 4)), expect=lambda x: np.nansum(x), loose=4)


@samples("nanmean")
def nanmean(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        numbers = _over(np.sum)(x == x, dim, keepdim)
        return _over(np.nansum)(x, dim, keepdim) / numbers

    for call in SEVERAL[:11]:
        yield Sample(make(call[0]), *call[1:], expect=expect, loose=4)
        x = make(call[0])
        # All of the first row where rows have 4 elements, and one elsewhere.
        x.reshape(-1)[:4] = x.reshape(-1)[-1:] = np.nan
        # Finite differences see nothing of a NaN.
        yield Sample(x, *call[1:], expect=expect, loose=4, grad=False)
    yield Sample(make((3, 4)), expect=expect, loose=4)
    yield Sample(make(()), expect=expect)
    yield Sample(
        make((3, 4)),
        None,
        True,
        dtype=treadle.complex128,
        expect=lambda *args, **options: expect(*args, **options).astype(np.complex128),
        loose=4,
    )


@samples("count_nonzero.dim_IntList")
def count_nonzero_dims(make: Maker) -> Iterator[Sample]:
    for shape, dims in [((3, 4), [0]), ((2, 3, 4), [0, -1]), ((0, 4), [0])]:
        x = np.where(make.mask(shape), make(shape), 0).astype(make(()).dtype)
        yield Sample(x, dims, expect=lambda x, d: np.count_nonzero(x, axis=tuple(d)))


@samples("count_nonzero")
def count_nonzero(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (), (0, 4)]:
        yield Sample(make(shape), expect=lambda x: np.asarray(np.count_nonzero(x)))
    yield Sample(make((3, 4)), -1, expect=lambda x, d: np.count_nonzero(x, axis=d))
