"""Copies, conversions and fills."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

import numpy as np

import treadle

from ..sample import NUMPY_TYPES, Maker, Sample, samples

ALL = tuple(NUMPY_TYPES)


def _as(dtype: treadle.dtype) -> Any:
    return NUMPY_TYPES[str(dtype).removeprefix("treadle.")]


def _cast(x: Any, dtype: treadle.dtype) -> Any:
    if x.dtype.kind == "c" and np.dtype(_as(dtype)).kind in "iu":
        x = x.real
    return x.astype(_as(dtype))


@samples("copy_")
def copy_(make: Maker) -> Iterator[Sample]:
    for a, b in [
        ((3, 4), (3, 4)),
        ((3, 4), (4,)),
        ((2, 3), ()),
        ((), ()),
        ((0, 4), (1, 4)),
        ((67,), (67,)),
    ]:
        yield Sample(make(a), make(b), expect=lambda x, y: np.broadcast_to(y, x.shape))
    # Converts to the dtype of `self`; int32 arrays keep theirs.
    whole = Maker("int32")((3, 4), 0, 4)
    yield Sample(make((3, 4)), whole, expect=lambda x, y: y.astype(x.dtype), grad=False)


@samples("copy")
def copy(make: Maker) -> Iterator[Sample]:
    for a, b in [((3, 4), (3, 4)), ((3, 4), (4,)), ((2, 3), ()), ((), ()), ((0, 4), (1, 4))]:
        yield Sample(make(a), make(b), expect=lambda x, y: np.broadcast_to(y, x.shape))
    whole = Maker("int32")((3, 4), 0, 4)
    yield Sample(make((3, 4)), whole, expect=lambda x, y: y.astype(x.dtype), grad=False)


@samples("clone")
def clone(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (), (0, 2), (67,)]:
        yield Sample(make(shape), expect=lambda x: x, exact=make.dtype != "bfloat16")
    yield Sample(
        make((2, 3)), memory_format=treadle.contiguous_format, expect=lambda x, memory_format: x
    )


@samples("contiguous")
def contiguous(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (), (0, 2)]:
        yield Sample(make(shape), expect=lambda x: x)


def _targets(make: Maker) -> list[treadle.dtype]:
    # A complex value becomes a real one only by asking for its real part.
    names = (
        ("complex64", "complex128")
        if make.is_complex
        else ("bool", "int16", "int64", "float32", "float64", "complex64")
    )
    return [getattr(treadle, n) for n in names]


@samples("to.dtype")
def to_dtype(make: Maker) -> Iterator[Sample]:
    for dtype in _targets(make):
        yield Sample(make((3, 4), 0, 3), dtype, expect=_cast, grad=False, loose=4)
    yield Sample(make((3,)), getattr(treadle, make.dtype), copy=True, expect=lambda x, d, copy: x)
    if make.dtype == "float64":
        yield Sample(make((3, 4)), treadle.complex128, expect=_cast)


@samples("to.dtype_layout")
def to_dtype_layout(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make((3, 4)),
        dtype=treadle.float64,
        device=treadle.device("cpu"),
        expect=lambda x, **_: x.astype(np.float64),
    )
    yield Sample(
        make((3, 4)), dtype=treadle.float64, copy=True, expect=lambda x, **_: x.astype(np.float64)
    )


@samples("to.device")
def to_device(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), "cpu", treadle.float64, expect=lambda x, *_: x.astype(np.float64))


@samples("to.other")
def to_other(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make((3, 4)), Maker("float64")((2,)), grad=False, expect=lambda x, y: x.astype(np.float64)
    )


@samples("type_as")
def type_as(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make((3, 4)), Maker("float64")((2,)), grad=False, expect=lambda x, y: x.astype(np.float64)
    )


def _fill(value: Callable[[Maker], Any]) -> Callable[[Maker], Iterator[Sample]]:
    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape in [(3, 4), (), (0, 2), (67,)]:
            yield Sample(
                make(shape), value(make), expect=lambda x, v: np.full(x.shape, v, dtype=x.dtype)
            )

    return make_samples


for _name in ("fill_.Scalar", "fill.Scalar"):
    samples(_name)(_fill(lambda make: make.scalar()))
for _name in ("fill_.Tensor", "fill.Tensor"):
    samples(_name)(_fill(lambda make: make(())))


@samples("zero_")
def zero_(make: Maker) -> Iterator[Sample]:
    for shape in [(3, 4), (), (0, 2)]:
        yield Sample(make(shape), expect=lambda x: np.zeros_like(x))


@samples("item")
def item(make: Maker) -> Iterator[Sample]:
    for shape in [(), (1,), (1, 1, 1)]:
        yield Sample(make(shape), grad=False, expect=lambda x: x.reshape(()))


def _resized(x: Any, size: Any) -> Any:
    # Only what was there before is defined: the samples do not grow.
    return x.reshape(-1)[: int(np.prod(size))].reshape(size)


@samples("resize_")
def resize_(make: Maker) -> Iterator[Sample]:
    for shape, size in [((3, 4), [2, 2]), ((3, 4), [12]), ((3, 4), []), ((3, 4), [0, 5])]:
        yield Sample(make(shape), size, grad=False, strides=True, expect=_resized)
    yield Sample(
        make((2,)),
        [4, 5],
        grad=False,
        strides=True,
        shape_only=True,
        expect=lambda x, s: np.zeros(s, dtype=x.dtype),
    )


@samples("resize_as_")
def resize_as_(make: Maker) -> Iterator[Sample]:
    yield Sample(
        make((3, 4)),
        make((2, 5)),
        grad=False,
        strides=True,
        expect=lambda x, y: _resized(x, y.shape),
    )


@samples("set_.source_Tensor")
def set_source(make: Maker) -> Iterator[Sample]:
    yield Sample(make((3, 4)), make((2, 5)), grad=False, strides=True, expect=lambda x, y: y)
