"""Indexing that is made of other indexing: coordinates, combinations, reductions into slices."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, Iterator

import numpy as np

from ..sample import NUMPY_TYPES, Maker, Sample, samples

SHAPES: tuple[tuple[int, ...], ...] = ((3, 4), (5,), (0, 3), (2, 3, 2), ())


def _sparse(make: Maker, shape: tuple[int, ...]) -> Any:
    return np.where(make.mask(shape), make(shape), 0).astype(make(()).dtype)


def _coordinates(x: Any) -> Any:
    # NumPy gives a number one dimension.
    return np.argwhere(x) if x.ndim else np.zeros((int(x != 0), 0), dtype=np.int64)


@samples("argwhere")
def argwhere(make: Maker) -> Iterator[Sample]:
    for shape in SHAPES:
        yield Sample(_sparse(make, shape), grad=False, expect=_coordinates)
    yield Sample(np.zeros_like(make((2, 3))), grad=False, expect=_coordinates)


@samples("nonzero_static")
def nonzero_static(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, size: int, fill_value: int = -1) -> Any:
        found = _coordinates(x)[:size]
        rest = np.full((size - len(found), x.ndim), fill_value, dtype=np.int64)
        return np.concatenate([found, rest])

    for shape in SHAPES:
        for size in (0, 2, 20):
            yield Sample(_sparse(make, shape), size=size, grad=False, expect=expect)
    yield Sample(_sparse(make, (3, 4)), size=20, fill_value=7, grad=False, expect=expect)


def _index_reduce(
    x: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True
) -> Any:
    out = np.atleast_1d(x).copy()
    lines = np.moveaxis(out, dim, 0)
    parts = np.moveaxis(np.atleast_1d(source), dim, 0)
    for at in np.unique(index):
        group = list(parts[np.flatnonzero(np.atleast_1d(index) == at)])
        stack = np.stack([lines[at], *group] if include_self else group)
        whole = stack.dtype.kind in "iu"
        lines[at] = {
            "prod": lambda: stack.prod(0, dtype=stack.dtype),
            "mean": lambda: stack.sum(0) // len(stack) if whole else stack.sum(0) / len(stack),
            "amax": lambda: stack.max(0),
            "amin": lambda: stack.min(0),
        }[reduce]()
    return out.reshape(x.shape)


@samples("index_reduce")
def index_reduce(make: Maker) -> Iterator[Sample]:
    for reduce, include_self in itertools.product(("prod", "mean", "amax", "amin"), (True, False)):
        for shape, dim, index in [
            ((3, 4), 0, [2, 0]),
            ((3, 4), -1, [1, 3, 1]),
            ((2, 3, 4), 1, [2, 0, 2, 2, 0]),
            ((3, 4), 0, []),
            ((0, 4), 1, [1]),
            ((), 0, [0]),
        ]:
            lengths = list(shape)
            if shape:
                lengths[dim] = len(index)
            # At a tie the gradient of a maximum is not what finite differences say.
            size = int(np.prod(shape))
            values = (
                make.distinct((size + int(np.prod(lengths)),))
                if reduce in ("amax", "amin")
                else make((size + int(np.prod(lengths)),), 0.5, 2)
            )
            yield Sample(
                values[:size].reshape(shape),
                dim,
                np.array(index, dtype=np.int64),
                values[size:].reshape(lengths),
                reduce,
                include_self=include_self,
                expect=_index_reduce,
                loose=8,
            )
    yield Sample(
        make((3, 4)), 0, np.array(1), make((1, 4)), "amax", expect=_index_reduce, grad=False
    )
    yield Sample(
        make((3, 4)),
        1,
        np.array([0, 3], dtype=np.int32),
        make((3, 2)),
        "prod",
        expect=_index_reduce,
        loose=4,
    )


@samples("combinations")
def combinations(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, r: int = 2, with_replacement: bool = False) -> Any:
        if r == 0:
            return x[:0]
        choose = (
            itertools.combinations_with_replacement if with_replacement else itertools.combinations
        )
        rows = list(choose(range(len(x)), r))
        return x[np.array(rows, dtype=np.int64).reshape(len(rows), r)]

    for n in (5, 3, 1, 0):
        for r in (0, 1, 2, 3, 4):
            for with_replacement in (False, True):
                yield Sample(make((n,)), r, with_replacement, expect=expect)
    yield Sample(make((4,)), expect=expect)


@samples("vander")
def vander(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, n: Any = None, increasing: bool = False, N: Any = None) -> Any:
        return np.vander(x.astype(np.int64) if x.dtype.kind in "biu" else x, n or N, increasing)

    for length in (4, 1, 0):
        x = make((length,), 0.5, 1.5)
        yield Sample(x, expect=expect, loose=4)
        for n, increasing in [(3, False), (6, True), (1, False), (2, True)]:
            yield Sample(x, n, increasing, expect=expect, loose=4)
    yield Sample(make((3,)), N=2, increasing=True, expect=expect, loose=4)
    yield Sample(make((3,)), 0, expect=lambda x, n: _none(x))
    zero = np.zeros((2,), dtype=NUMPY_TYPES[make.dtype])
    yield Sample(zero, 3, expect=expect)


def _none(x: Any) -> Any:
    """The powers of no exponent."""
    return np.zeros((len(x), 0), dtype=np.int64 if x.dtype.kind in "biu" else x.dtype)


@samples("segment_reduce")
def segment_reduce(make: Maker) -> Iterator[Sample]:
    def expect(
        x: Any, reduce: str, *, lengths: Any = None, offsets: Any = None, axis: int = 0,
        unsafe: bool = False, initial: Any = None,
    ) -> Any:  # fmt: skip
        whole = {"max": -np.inf, "min": np.inf, "prod": 1.0, "sum": 0.0, "mean": 0.0}[reduce]
        whole = whole if initial is None else initial
        if offsets is None:
            zero = np.zeros((*lengths.shape[:-1], 1), np.int64)
            offsets = np.concatenate([zero, lengths.cumsum(-1)], -1)
        out = np.zeros((*x.shape[:axis], offsets.shape[-1] - 1, *x.shape[axis + 1 :]))
        for row in np.ndindex(*x.shape[:axis]):
            for i, (begin, end) in enumerate(zip(offsets[row], offsets[row][1:])):
                part = x[row][begin:end]
                if reduce == "mean":
                    empty = whole if initial is not None else np.nan
                    value = (whole + part.sum(0)) / len(part) if len(part) else empty
                else:
                    name = {"max": "maximum", "min": "minimum", "prod": "multiply", "sum": "add"}
                    value = getattr(np, name[reduce]).reduce(part, axis=0, initial=whole)
                out[(*row, i)] = value
        return out

    for reduce in ("sum", "mean", "max", "min", "prod"):
        yield Sample(
            make.distinct((5, 2)), reduce, lengths=np.array([1, 0, 4]), expect=expect, loose=4,
            grad=reduce in ("sum", "prod"),  # of no elements the others are NaN or infinite
        )  # fmt: skip
        yield Sample(
            make.distinct((2, 4, 3)), reduce, lengths=np.array([[1, 3], [4, 0]]), axis=1,
            initial=1.37, expect=expect, loose=4,
        )  # fmt: skip
        yield Sample(
            make.distinct((6,)), reduce, offsets=np.array([1, 3, 5]), expect=expect, loose=4
        )
    yield Sample(
        make.distinct((6,)), "sum", lengths=np.array([1, 2]), unsafe=True, expect=expect, loose=4
    )
