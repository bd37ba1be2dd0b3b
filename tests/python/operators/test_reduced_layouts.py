"""Reductions of layouts that have loops of their own: short and long rows, rows in two dimensions,
columns of matrices that are narrow, or wide enough to be read ahead.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle

DTYPES = [
    treadle.float32,
    treadle.float64,
    treadle.float16,
    treadle.bfloat16,
    treadle.int8,
    treadle.int64,
    treadle.bool,
    treadle.complex64,
]
# Sizes, and the dimensions that are reduced.
LAYOUTS: list[tuple[tuple[int, ...], Any]] = [
    *(((5, n), 1) for n in (1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 47, 63, 65, 130, 600, 5000)),
    *(((n, 5), 0) for n in (1, 2, 31, 33, 1000, 1025, 5003)),
    ((4099, 1), 0),
    ((700, 32), 0),
    ((2, 1100, 6), 1),
    ((70, 300), 0),
    ((37, 517), 0),
    ((33, 2100), 0),
    ((3, 50, 64), 1),
    ((70, 5, 33), (0, 2)),
    ((700, 3, 140), (0, 2)),
    ((3, 2, 5000), (0, 2)),
    ((40, 3, 9, 50), (0, 2, 3)),
]


def values(sizes: tuple[int, ...], dtype: Any) -> treadle.Tensor:
    """Numbers whose sums every dtype has exactly, and whose order matters to no result."""
    rng = np.random.default_rng(0)
    signs = rng.integers(-1, 2, sizes)
    # Few of them are not 0, so that sums are small.
    chosen = signs * (rng.random(sizes) < 0.05)
    return treadle.tensor(chosen.astype(np.float64)).to(dtype)


def wide(t: treadle.Tensor) -> np.ndarray:
    if t.dtype == treadle.complex64:
        return t.numpy()
    return t.to(treadle.float64).numpy()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sizes, dims", LAYOUTS, ids=str)
def test_sums(dtype: Any, sizes: tuple[int, ...], dims: Any) -> None:
    x = values(sizes, dtype)
    assert np.array_equal(wide(treadle.sum(x, dims)), wide(x).sum(dims))


@pytest.mark.parametrize("dtype", DTYPES[:-1], ids=str)
@pytest.mark.parametrize("sizes, dims", LAYOUTS, ids=str)
def test_extremes(dtype: Any, sizes: tuple[int, ...], dims: Any) -> None:
    x = values(sizes, dtype)
    assert np.array_equal(wide(treadle.amax(x, dims)), wide(x).max(dims))
    assert np.array_equal(wide(treadle.amin(x, dims)), wide(x).min(dims))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sizes, dims", [c for c in LAYOUTS if type(c[1]) is int], ids=str)
def test_products(dtype: Any, sizes: tuple[int, ...], dims: int) -> None:
    x = values(sizes, dtype)
    x = treadle.where(x == 0, treadle.ones_like(x), x)
    assert np.array_equal(wide(treadle.prod(x, dims)), wide(x).prod(dims))


@pytest.mark.parametrize("sizes, dims", LAYOUTS, ids=str)
def test_a_nan_is_found_wherever_it_is(sizes: tuple[int, ...], dims: Any) -> None:
    rng = np.random.default_rng(0)
    for _ in range(10):
        x = rng.random(sizes).astype(np.float32)
        x.flat[rng.integers(x.size)] = np.nan
        assert np.array_equal(treadle.amax(treadle.tensor(x), dims).numpy(), x.max(dims), True)


@pytest.mark.parametrize("sizes, dims", LAYOUTS, ids=str)
def test_sums_have_the_same_bits_at_any_number_of_threads(
    sizes: tuple[int, ...], dims: Any
) -> None:
    x = treadle.rand(*sizes)
    threads = treadle.get_num_threads()
    try:
        treadle.set_num_threads(1)
        expected = treadle.sum(x, dims)
        treadle.set_num_threads(3)
        assert np.array_equal(treadle.sum(x, dims).numpy(), expected.numpy())
    finally:
        treadle.set_num_threads(threads)
