"""Factories, triangles and grids."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Iterator

import numpy as np

import treadle

from ..sample import NUMPY_TYPES, Maker, Sample, samples


def _dtype(make: Maker) -> treadle.dtype:
    return getattr(treadle, make.dtype)


def _filled(make: Maker, value: Any) -> Callable[..., Any]:
    """A reference for factories of one value: the sizes are the first list among the arguments."""

    def expect(*args: Any, **_: Any) -> Any:
        size = next(a for a in args if isinstance(a, (list, tuple)))
        return np.full(tuple(size), value, dtype=NUMPY_TYPES[make.dtype])

    return expect


SIZES: tuple[list[int], ...] = ([2, 3], [], [0, 4], [5])


def _factory(value: Any, **flags: Any) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for size in SIZES:
            yield Sample(size, dtype=_dtype(make), expect=_filled(make, value), **flags)

    return make_samples


samples("empty.memory_format")(_factory(0, shape_only=True))
samples("zeros")(_factory(0))
samples("ones")(_factory(1))


@samples("empty_strided")
def empty_strided(make: Maker) -> Iterator[Sample]:
    for size, stride in [([2, 3], [1, 2]), ([], []), ([0, 4], [4, 1]), ([2, 2], [0, 1])]:
        yield Sample(size, stride, dtype=_dtype(make), shape_only=True, expect=_filled(make, 0))


@samples("empty_permuted")
def empty_permuted(make: Maker) -> Iterator[Sample]:
    for size, order in [([2, 3], [1, 0]), ([2, 3, 4], [0, 2, 1]), ([], []), ([0, 4], [1, 0])]:
        yield Sample(size, order, dtype=_dtype(make), shape_only=True, expect=_filled(make, 0))


@samples("full")
def full(make: Maker) -> Iterator[Sample]:
    for size in SIZES:
        value = make.scalar()
        yield Sample(size, value, dtype=_dtype(make), expect=_filled(make, value))


def _like(value: Any, **flags: Any) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape in [(2, 3), (), (0, 4)]:
            yield Sample(
                make(shape),
                grad=False,
                expect=lambda x: np.full(x.shape, value, dtype=x.dtype),
                **flags,
            )
            yield Sample(
                make(shape),
                dtype=treadle.int32,
                grad=False,
                expect=lambda x, dtype: np.full(x.shape, value),
                **flags,
            )

    return make_samples


samples("empty_like")(_like(0, shape_only=True))
samples("zeros_like")(_like(0))
samples("ones_like")(_like(1))


@samples("full_like")
def full_like(make: Maker) -> Iterator[Sample]:
    for shape in [(2, 3), ()]:
        yield Sample(
            make(shape),
            make.scalar(),
            grad=False,
            expect=lambda x, v: np.full(x.shape, v, dtype=x.dtype),
        )


def _new(value: Any, **flags: Any) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for size in SIZES:
            yield Sample(make((2,)), size, grad=False, expect=_filled(make, value), **flags)
            yield Sample(
                make((2,)),
                size,
                dtype=treadle.int64,
                grad=False,
                expect=lambda x, s, dtype: np.full(s, value),
                **flags,
            )

    return make_samples


samples("new_empty")(_new(0, shape_only=True))
samples("new_zeros")(_new(0))
samples("new_ones")(_new(1))


@samples("new_empty_strided")
def new_empty_strided(make: Maker) -> Iterator[Sample]:
    yield Sample(make((2,)), [2, 3], [1, 2], shape_only=True, grad=False, expect=_filled(make, 0))


@samples("new_full")
def new_full(make: Maker) -> Iterator[Sample]:
    value = make.scalar()
    yield Sample(make((2,)), [2, 3], value, grad=False, expect=_filled(make, value))


@samples("scalar_tensor")
def scalar_tensor(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make.scalar(),
        dtype=_dtype(make),
        expect=lambda v, dtype: np.asarray(v, dtype=NUMPY_TYPES[make.dtype]),
    )
    if make.dtype == "float32":
        yield Sample(2, expect=lambda v: np.float32(v))


def _arange(make: Maker, *bounds: Any) -> Sample:
    return Sample(
        *bounds,
        dtype=_dtype(make),
        expect=lambda *b, dtype: np.arange(*b).astype(NUMPY_TYPES[make.dtype]),
    )


@samples("arange")
def arange(make: Maker) -> Iterator[Sample]:
    for end in (5, 0, 70):
        yield _arange(make, end)
    yield Sample(3, expect=lambda n: np.arange(n))
    yield Sample(2.5, expect=lambda n: np.arange(n))


@samples("arange.start")
def arange_start(make: Maker) -> Iterator[Sample]:
    for start, end in [(2, 7), (-3, 3), (4, 4)]:
        yield _arange(make, start, end)


@samples("arange.start_step")
def arange_start_step(make: Maker) -> Iterator[Sample]:
    for start, end, step in [(0, 10, 3), (5, -5, -2), (3, 3, 1)]:
        yield _arange(make, start, end, step)
    if make.is_floating:
        yield _arange(make, 0.5, 2.0, 0.25)


def _range(make: Maker, start: float, end: float, *step: float) -> Sample:
    def expect(first: float, last: float, by: float = 1, **_: Any) -> Any:
        count = int((last - first) / by) + 1
        return (first + by * np.arange(count)).astype(NUMPY_TYPES[make.dtype])

    return Sample(start, end, *step, dtype=_dtype(make), expect=expect)


@samples("range")
def range_(make: Maker) -> Iterator[Sample]:
    for start, end in [(0, 5), (3, 3), (2, 71)]:
        yield _range(make, start, end)
    # Whatever the numbers are, the dtype is the default one.
    yield Sample(1, 4, expect=lambda a, b: np.arange(1.0, 5.0))


@samples("range.step")
def range_step(make: Maker) -> Iterator[Sample]:
    for start, end, step in [(0, 9, 3), (0, 10, 3), (5, 1, -2), (4, 4, -1)]:
        yield _range(make, start, end, step)
    if make.is_floating:
        yield _range(make, 0.5, 2.0, 0.25)


@samples("linspace")
def linspace(make: Maker) -> Iterator[Sample]:
    for start, end, steps in [(0, 8, 5), (3, -3, 4), (1, 5, 1), (0, 1, 0), (0, 100, 101)]:
        yield Sample(
            start,
            end,
            steps,
            dtype=_dtype(make),
            expect=lambda a, b, n, dtype: np.linspace(a, b, n).astype(NUMPY_TYPES[make.dtype]),
        )


@samples("logspace")
def logspace(make: Maker) -> Iterator[Sample]:
    def expect(a: float, b: float, n: int, base: float = 10.0, **_: Any) -> Any:
        return np.asarray(base ** np.linspace(a, b, n)).astype(NUMPY_TYPES[make.dtype])

    for start, end, steps, base in [(0, 3, 4, 2.0), (2, 2, 1, 3.0), (0, 1, 0, 2.0)]:
        yield Sample(start, end, steps, base, dtype=_dtype(make), expect=expect)
    yield Sample(0, 2, 3, dtype=_dtype(make), expect=expect)


def _between(make: Maker, powers: bool, of_start: bool, of_end: bool) -> Iterator[Sample]:
    """Samples of the overloads that take an end of the range, or both, as a tensor."""

    def expect(a: Any, b: Any, n: int, *base: float, dtype: Any) -> Any:
        values = np.linspace(np.asarray(a).item(), np.asarray(b).item(), n)
        values = (base[0] if base else 10.0) ** values if powers else values
        return values.astype(NUMPY_TYPES[make.dtype])

    for start, end, steps, *base in [(0, 4, 5), (0, 2, 3), (1, 5, 1), (0, 1, 0), (0, 3, 4, 2.0)]:
        if base and not powers:
            continue
        yield Sample(
            np.asarray(start) if of_start else start,
            np.asarray(float(end)) if of_end else end,
            steps,
            *base,
            dtype=_dtype(make),
            expect=expect,
        )


for _kinds in ("Tensor_Tensor", "Tensor_Scalar", "Scalar_Tensor"):
    _ends = [kind == "Tensor" for kind in _kinds.split("_")]
    for _name in ("linspace", "logspace"):
        samples(f"{_name}.{_kinds}")(
            partial(_between, powers=_name == "logspace", of_start=_ends[0], of_end=_ends[1])
        )


@samples("eye")
def eye(make: Maker) -> Iterator[Sample]:
    for n in (3, 0, 1):
        yield Sample(
            n, dtype=_dtype(make), expect=lambda n, dtype: np.eye(n, dtype=NUMPY_TYPES[make.dtype])
        )


@samples("eye.m")
def eye_m(make: Maker) -> Iterator[Sample]:
    for n, m in [(3, 2), (2, 4), (0, 3)]:
        yield Sample(
            n,
            m,
            dtype=_dtype(make),
            expect=lambda n, m, dtype: np.eye(n, m, dtype=NUMPY_TYPES[make.dtype]),
        )


def _triangle(reference: Callable[..., Any]) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape in [(3, 4), (4, 3), (2, 3, 3), (0, 3)]:
            yield Sample(make(shape), expect=reference)
        for k in (-1, 1, 9, -9):
            yield Sample(make((3, 4)), k, expect=reference)

    return make_samples


samples("tril")(_triangle(np.tril))
samples("triu")(_triangle(np.triu))


def _triangle_indices(reference: Callable[..., Any]) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for row, column, offset in [(3, 4, 0), (4, 3, -1), (3, 3, 2), (0, 3, 0), (2, 2, -5)]:
            yield Sample(
                row,
                column,
                offset,
                dtype=_dtype(make),
                expect=lambda r, c, k, dtype: np.stack(reference(r, k, c)),
            )

    return make_samples


samples("tril_indices")(_triangle_indices(np.tril_indices))
samples("triu_indices")(_triangle_indices(np.triu_indices))


@samples("complex")
def complex_(make: Maker) -> Iterator[Sample]:
    for a, b in [((2, 3), (2, 3)), ((), ()), ((3, 1), (4,)), ((0,), (0,))]:
        yield Sample(make(a), make(b), expect=lambda re, im: re + 1j * im)


@samples("polar")
def polar(make: Maker) -> Iterator[Sample]:
    for a, b in [((2, 3), (2, 3)), ((), ()), ((3, 1), (4,))]:
        yield Sample(make(a, 0.5, 2), make(b), expect=lambda r, phi: r * np.exp(1j * phi))


@samples("meshgrid")
def meshgrid(make: Maker) -> Iterator[Sample]:
    for shapes in [((2,), (3,)), ((4,),), ((2,), (0,), (3,))]:
        yield Sample([make(s) for s in shapes], expect=lambda x: np.meshgrid(*x, indexing="ij"))


@samples("meshgrid.indexing")
def meshgrid_indexing(make: Maker) -> Iterator[Sample]:
    for indexing in ("ij", "xy"):
        for shapes in [((2,), (3,)), ((2,), (3,), (4,))]:
            yield Sample(
                [make(s) for s in shapes],
                indexing=indexing,
                expect=lambda x, indexing: np.meshgrid(*x, indexing=indexing),
            )
