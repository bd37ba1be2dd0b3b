"""cdist and pdist between more points, of more coordinates, than a vector or a run of a sum has."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 2.5, 3.0, float("inf")])
@pytest.mark.parametrize("columns", [1, 17, 33, 70])
@pytest.mark.parametrize("width", [0, 1, 16, 17, 100])
def test_distances(width: int, columns: int, p: float, dtype: str) -> None:
    rng = np.random.default_rng(columns + width)
    a = rng.standard_normal((2, 5, width)).astype(dtype)
    b = rng.standard_normal((2, columns, width)).astype(dtype)
    a[:, 0, : width // 2] = b[:, 0, : width // 2]
    size = np.abs(a[:, :, None].astype(np.float64) - b[:, None].astype(np.float64))
    if p == 0:
        expected = (size != 0).sum(-1)
    elif p == float("inf"):
        expected = size.max(-1, initial=0)
    else:
        expected = (size**p).sum(-1) ** (1 / p)
    got = treadle.cdist(treadle.tensor(a), treadle.tensor(b), p).numpy()
    # Products of many coordinates round more often than differences do.
    rtol = 1e-14 if dtype == "float64" else 5e-7 if p == 2 and width >= 8 else 2e-7
    np.testing.assert_allclose(got, expected, rtol=rtol)


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, float("inf")])
def test_distances_of_no_finite_numbers(p: float) -> None:
    inf, nan = float("inf"), float("nan")
    a = treadle.tensor([[inf] * 40, [nan] * 40, [1.0] * 40])
    found = treadle.cdist(a, treadle.zeros(20, 40), p)[:, 0].tolist()
    expected = [40.0, 40.0] if p == 0 else [inf, nan]
    np.testing.assert_equal(found[:2], expected)
    assert found[2] == pytest.approx(1.0 if p == inf else 40.0 if p == 0 else 40 ** (1 / p))


# Sums of products lose the digits of these distances, overflow, or are below the normal numbers.
@pytest.mark.parametrize("scale, middle", [(1e-3, 100.0), (1e-4, 1.0), (1e25, 0.0), (1e-25, 0.0)])
@pytest.mark.parametrize("columns", [1, 17, 70])
@pytest.mark.parametrize("width", [16, 17, 300])
def test_distances_of_points_far_from_zero(
    width: int, columns: int, scale: float, middle: float
) -> None:
    rng = np.random.default_rng(columns + width)
    a = (middle + scale * rng.standard_normal((2, 5, width))).astype("float32")
    b = (middle + scale * rng.standard_normal((2, columns, width))).astype("float32")
    b[:, 0] = a[:, 0]
    difference = a[:, :, None].astype(np.float64) - b[:, None].astype(np.float64)
    expected = np.sqrt((difference**2).sum(-1))
    got = treadle.cdist(treadle.tensor(a), treadle.tensor(b)).numpy()
    np.testing.assert_allclose(got, expected, rtol=2e-7)
    assert (got[:, 0, 0] == 0).all()


def test_a_distance_does_not_depend_on_the_points_beside() -> None:
    rng = np.random.default_rng(0)
    a = treadle.tensor(rng.standard_normal((40, 50)).astype("float32"))
    b = treadle.tensor(rng.standard_normal((70, 50)).astype("float32"))
    for p in (0.0, 1.0, 2.0, float("inf")):
        every = treadle.cdist(a, b, p)
        assert treadle.equal(every[3:5, 7:60], treadle.cdist(a[3:5], b[7:60], p))


@pytest.mark.parametrize("points", [2, 63, 64, 65, 200, 700])
def test_pairs_of_one_set_are_those_of_two(points: int) -> None:
    x = treadle.tensor(np.random.default_rng(0).standard_normal((points, 3)).astype("float32"))
    i, j = np.triu_indices(points, 1)
    for p in (1.0, 2.0, 3.0):
        expected = treadle.cdist(x, x, p).numpy()[i, j]
        np.testing.assert_array_equal(treadle.nn.functional.pdist(x, p).numpy(), expected)


@pytest.mark.parametrize("width", [300, 20_000, 200_000])
@pytest.mark.parametrize("low", [-1.0, 0.0])
def test_distances_of_many_coordinates(width: int, low: float) -> None:
    rng = np.random.default_rng(width)
    a, b = (rng.uniform(low, 1, (20, width)).astype("float32") for _ in range(2))
    expected = np.sqrt(((a[:, None].astype(np.float64) - b[None]) ** 2).sum(-1))
    got = treadle.cdist(treadle.tensor(a), treadle.tensor(b)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-6)
