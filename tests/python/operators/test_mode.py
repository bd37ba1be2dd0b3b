"""The most frequent element of slices of any size, against a count of each."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle


def reference(slice_: np.ndarray) -> tuple[float, int]:
    numbers = slice_[slice_ == slice_]
    if numbers.size == 0:
        return slice_[0], 0
    values, counts = np.unique(numbers, return_counts=True)
    best = values[counts.argmax()]
    return best, int(np.flatnonzero(slice_ == best)[-1])


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int16", "int64", "float16", "float32", "float64"]
)
@pytest.mark.parametrize("size", [1, 2, 10, 100, 5000])
@pytest.mark.parametrize("kinds", [2, 7, 1000])
def test_mode(dtype: str, size: int, kinds: int) -> None:
    rng = np.random.default_rng(size)
    a = rng.integers(0, kinds, (6, size))
    x = (a if dtype == "uint8" else a - kinds // 2).astype(dtype)
    if dtype.startswith("float"):
        x[1, ::2] = np.nan
        x[2] = np.nan
        x[3] = np.where(rng.integers(0, 2, size), -0.0, 0.0)
    for dim, of in [(1, x), (0, np.ascontiguousarray(x.T))]:
        values, indices = treadle.mode(treadle.tensor(of), dim)
        expected = [reference(row) for row in x]
        np.testing.assert_array_equal(values.numpy(), np.array([v for v, _ in expected], dtype))
        np.testing.assert_array_equal(indices.numpy(), [at for _, at in expected])
