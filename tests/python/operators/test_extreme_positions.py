"""Where the extreme element is, for runs of every kind of length: NaN counts as the extreme, and
the first of equals is taken, wherever it stands in the vectors that the search is made of."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle

LENGTHS = [1, 2, 7, 15, 16, 17, 33, 63, 64, 65, 130, 257, 5000]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_nan_at_every_place(length: int, dtype: str) -> None:
    rng = np.random.default_rng(length)
    places = range(length) if length < 300 else rng.integers(0, length, 20)
    for place in places:
        a = rng.standard_normal(length).astype(dtype)
        a[place:] = np.where(rng.random(length - place) < 0.1, np.nan, a[place:])
        a[place] = np.nan
        x = treadle.from_numpy(a)
        for function in (treadle.argmax, treadle.argmin):
            assert function(x).item() == place
            assert function(x.reshape(1, -1), 1).item() == place
            assert function(x.reshape(-1, 1), 0).item() == place
        for function in (treadle.max, treadle.min):
            value, index = function(x, 0)
            assert value.isnan().item() and index.item() == place


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_the_first_of_equals(length: int, dtype: str) -> None:
    rng = np.random.default_rng(length)
    for _ in range(20):
        a = rng.integers(0, rng.integers(1, 100), length).astype(dtype)
        x = treadle.from_numpy(a)
        assert treadle.argmax(x).item() == a.argmax() and treadle.argmin(x).item() == a.argmin()


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_the_extreme_so_far(name: str, dim: int) -> None:
    rows = np.random.default_rng(0).integers(-9, 9, (37, 41)).astype(np.float32)
    rows[3, 5] = rows[3, 8] = np.nan
    values, places = getattr(treadle, name)(treadle.from_numpy(rows), dim)
    for given, found, at in zip(
        *(np.moveaxis(a, dim, 1) for a in (rows, *map(np.array, (values, places))))
    ):
        best = 0
        for j, x in enumerate(given):
            y = given[best]
            best = j if x != x or (y == y and (x >= y if name == "cummax" else x <= y)) else best
            assert at[j] == best
            np.testing.assert_array_equal(found[j], given[best])
