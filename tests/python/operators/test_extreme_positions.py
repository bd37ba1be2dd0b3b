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


@pytest.mark.parametrize(
    "shape, dim", [((131, 3), 0), ((3, 200, 5), 1), ((64, 2), 0), ((500, 9), 1)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
@pytest.mark.parametrize("nans", [0.0, 0.02, 0.5])
def test_extremes_of_short_rows(shape: tuple[int, ...], dim: int, dtype: str, nans: float) -> None:
    """The first of equal elements, or of the NaN."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, shape).astype(dtype)
    if dtype.startswith("float"):
        x[rng.random(shape) < nans] = np.nan
    for name, worst in (("max", np.inf), ("min", -np.inf)):
        ordered = np.where(np.isnan(x), worst, x)
        at = getattr(np, "arg" + name)(ordered, axis=dim)
        values, places = getattr(treadle, name)(treadle.from_numpy(x), dim)
        np.testing.assert_array_equal(places.numpy(), at)
        expected = np.take_along_axis(x, np.expand_dims(at, dim), dim).squeeze(dim)
        np.testing.assert_array_equal(values.numpy(), expected)
