"""Counts and densities between edges, against numpy.histogram."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

import numpy as np

from ..sample import NUMPY_TYPES, Maker, Sample, samples


@samples("histc")
def histc(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, bins: int = 100, min: Any = 0, max: Any = 0) -> Any:
        low, high = (min, max) if min != max or not x.size else (x.min(), x.max())
        if low == high:
            low, high = low - 1, high + 1
        numbers = x[x == x]
        return np.histogram(numbers, bins, (low, high))[0].astype(np.float64)

    for shape in [(3, 4), (67,), (), (0,), (2, 1, 5)]:
        yield Sample(make.distinct(shape), 4, grad=False, expect=expect)
        yield Sample(make(shape), 5, -1, 1.5, grad=False, expect=expect)
    yield Sample(make((300,)), 7, 0, 1, grad=False, expect=expect)
    yield Sample(make((40,)), bins=3, min=-2.5, max=-0.5, grad=False, expect=expect)
    # On the edges themselves: each belongs to the bin above, the last one to the last.
    edges = np.array([-1, -0.5, 0, 0.5, 1, 1, 2], dtype=NUMPY_TYPES[make.dtype])
    yield Sample(edges, 4, -1, 1, grad=False, expect=expect)
    yield Sample(np.ones_like(edges), 2, grad=False, expect=expect)
    yield Sample(np.ones_like(edges), 2, 3, 3, grad=False, expect=expect)
    yield Sample(make.distinct((9,)), grad=False, expect=expect)
    holed = make((9,))
    holed[[1, 4, 5]] = np.nan, np.inf, -np.inf
    yield Sample(holed, 3, -1, 1, grad=False, expect=expect)


def _histogram(x: Any, bins: Any, range: Any, weight: Any, density: bool) -> Any:
    weights = None if weight is None else weight.reshape(-1)
    counts, edges = np.histogram(x.reshape(-1), bins, range, weights=weights, density=density)
    return counts.astype(np.float64), edges


@samples("histogram.bins_tensor")
def histogram_edges(make: Maker) -> Iterator[Sample]:
    def expect(x: Any, bins: Any, weight: Any = None, density: bool = False) -> Any:
        return _histogram(x, bins, None, weight, density)

    edges = np.array([-1.5, -1, 0, 0.25, 0.25, 2], dtype=NUMPY_TYPES[make.dtype])
    for shape in [(3, 4), (67,), (), (0, 3), (2, 1, 5)]:
        x = make(shape)
        yield Sample(x, edges, grad=False, expect=expect)
        yield Sample(x, edges, weight=make(shape), grad=False, expect=expect, loose=4)
    apart = np.array([-1.5, -1, 0, 0.25, 2], dtype=NUMPY_TYPES[make.dtype])
    yield Sample(make((40,)), apart, density=True, grad=False, expect=expect, loose=4)
    yield Sample(
        make((4, 10)),
        apart,
        weight=make((4, 10), 0.5, 1.5),
        density=True,
        grad=False,
        expect=expect,
        loose=4,
    )
    yield Sample(apart.copy(), apart, grad=False, expect=expect)
    yield Sample(make((5,)), apart[1:3].copy(), grad=False, expect=expect)
    holed = make((9,))
    holed[[1, 4, 5]] = np.nan, np.inf, -np.inf
    yield Sample(holed, apart, grad=False, expect=expect)


@samples("histogram.bin_ct")
def histogram_count(make: Maker) -> Iterator[Sample]:
    def expect(
        x: Any, bins: int = 100, range: Any = None, weight: Any = None, density: bool = False
    ) -> Any:
        return _histogram(x, bins, range, weight, density)

    for shape in [(3, 4), (67,), (), (0, 3), (2, 1, 5)]:
        x = make.distinct(shape)
        yield Sample(x, 4, grad=False, expect=expect)
        yield Sample(x, 3, range=[-1.0, 1.5], grad=False, expect=expect)
        yield Sample(x, 5, weight=make(shape), grad=False, expect=expect, loose=4)
    yield Sample(make.distinct((9,)), grad=False, expect=expect, loose=4)
    x = make((40,))
    yield Sample(x, 4, range=[-2.0, 2.0], density=True, grad=False, expect=expect, loose=4)
    yield Sample(
        make((40,)),
        4,
        range=[0.0, 2.0],
        weight=make((40,), 0.5, 1.5),
        density=True,
        grad=False,
        expect=expect,
        loose=4,
    )
    yield Sample(np.ones((5,), NUMPY_TYPES[make.dtype]), 2, grad=False, expect=expect)
    yield Sample(make((5,)), 2, range=[1.0, 1.0], grad=False, expect=expect)
