"""Running extremes with their positions, and running sums of exponentials."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, Callable, Iterator

import numpy as np

from ..sample import NUMPY_TYPES, Maker, Sample, samples
from .composed_pointwise import logaddexp

CALLS: tuple[tuple[tuple[int, ...], int], ...] = (
    ((3, 4), 0),
    ((3, 4), -1),
    ((2, 3, 4), 1),
    ((2, 3, 4), -3),
    ((41,), 0),
    ((0, 3), 0),
    ((3, 0), 1),
    ((0, 3), -1),
    ((), 0),
    ((), -1),
)


def _extreme(better: Callable[[Any, Any], Any]) -> Callable[[Maker], Iterator[Sample]]:
    def expect(x: Any, dim: int) -> Any:
        at = np.zeros(x.shape, dtype=np.int64)
        if x.ndim == 0:
            return x, at
        rows, places = np.moveaxis(x, dim, 0), np.moveaxis(at, dim, 0)
        best, position = rows[:1].copy(), places[:1].copy()
        for i, row in enumerate(rows):
            # The last of equal elements counts; a NaN gives way to a NaN only.
            taken = better(row, best) | (row == best) | (row != row)
            best, position = np.where(taken, row, best), np.where(taken, i, position)
            places[i] = position[0]
        return np.take_along_axis(x, at, dim), at

    def make_samples(make: Maker) -> Iterator[Sample]:
        for shape, dim in CALLS:
            yield Sample(make.distinct(shape), dim, expect=expect)
        ties = make((3, 20))
        if make.is_floating:
            ties = np.asarray(np.round(ties), dtype=NUMPY_TYPES[make.dtype])
        yield Sample(ties, 1, grad=False, expect=expect)
        if make.is_floating:
            x = make.distinct((7,))
            x[[2, 4]] = np.nan
            x[0] = np.inf
            yield Sample(x, 0, grad=False, expect=expect)
            yield Sample(-x, 0, grad=False, expect=expect)

    return make_samples


samples("cummax")(_extreme(lambda a, b: a > b))
samples("cummin")(_extreme(lambda a, b: a < b))


@samples("logcumsumexp")
def logcumsumexp(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, dim: int) -> Any:
        if np.iscomplexobj(x) and x.size and x.ndim:
            lines = np.moveaxis(x.astype(np.complex128), dim, 0)
            return np.moveaxis(np.stack(list(itertools.accumulate(lines, logaddexp))), 0, dim)
        return np.logaddexp.accumulate(x, axis=dim) if x.ndim and x.size else x

    for shape, dim in CALLS:
        yield Sample(make(shape), dim, expect=expect, loose=2)
    far = 100 if make.dtype == "float16" else 1000
    # Exponentials of these are beyond every dtype.
    yield Sample((make((3, 4)) + far).astype(NUMPY_TYPES[make.dtype]), 1, expect=expect, loose=2)
    yield Sample(
        (make((3, 4)) * far).astype(NUMPY_TYPES[make.dtype]), 0, grad=False, expect=expect, loose=2
    )
    if make.is_complex:
        return
    endless = np.array(
        [[-np.inf, -np.inf, 1, 2], [0, np.inf, 1, -np.inf], [1, np.nan, np.inf, 2]],
        dtype=NUMPY_TYPES[make.dtype],
    )
    yield Sample(endless, 1, grad=False, expect=expect, loose=2)
