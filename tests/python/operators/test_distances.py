"""cdist between more points, of more coordinates, than a vector or a run of a sum has."""

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
    np.testing.assert_allclose(got, expected, rtol=2e-7 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, float("inf")])
def test_distances_of_no_finite_numbers(p: float) -> None:
    inf, nan = float("inf"), float("nan")
    a = treadle.tensor([[inf] * 40, [nan] * 40, [1.0] * 40])
    found = treadle.cdist(a, treadle.zeros(20, 40), p)[:, 0].tolist()
    expected = [40.0, 40.0] if p == 0 else [inf, nan]
    np.testing.assert_equal(found[:2], expected)
    assert found[2] == pytest.approx(1.0 if p == inf else 40.0 if p == 0 else 40 ** (1 / p))
