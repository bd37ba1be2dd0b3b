"""Counts of elements: histc and histogram over few and many bins, of numbers outside; counts in
pieces; and the weights that multinomial refuses.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle


@pytest.mark.parametrize("count", [1, 255, 256, 1000, 100_003])
@pytest.mark.parametrize("bins", [1, 4, 100, 5000])
@pytest.mark.parametrize("dtype", [treadle.float32, treadle.float64], ids=str)
def test_histc(dtype: treadle.dtype, bins: int, count: int) -> None:
    x = treadle.from_numpy(np.random.default_rng(0).standard_normal(count)).to(dtype)
    numbers = x.to(treadle.float64).numpy()
    least, greatest = (
        (numbers.min(), numbers.max()) if count > 1 else (numbers[0] - 1, numbers[0] + 1)
    )
    expected = np.histogram(numbers, bins, (least, greatest))[0]
    found = treadle.histc(x, bins).to(treadle.float64).numpy()
    assert found.sum() == count
    # NumPy rounds some numbers at the edge of a bin to the other side.
    assert np.abs(np.cumsum(found - expected)).max() <= 2


def test_histc_leaves_out_what_is_outside() -> None:
    numbers = np.random.default_rng(0).integers(0, 10, 3000).astype(np.float32)
    x = treadle.from_numpy(numbers)
    x[::7], x[1::7], x[2::7] = float("nan"), float("inf"), -1.0
    counted = x.numpy()
    expected = [np.count_nonzero(counted == k) for k in range(2, 8)]
    expected[-1] += np.count_nonzero(counted == 8)  # the last bin has both its ends
    np.testing.assert_array_equal(treadle.histc(x, 6, 2, 8).numpy(), expected)


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_multinomial_refuses_what_is_no_weight(weight: float) -> None:
    weights = treadle.ones(3, 50)
    weights[1, 17] = weight
    with pytest.raises(RuntimeError, match=f"expected finite weights >= 0, got {weight:g}"):
        treadle.multinomial(weights, 2)
    with pytest.raises(RuntimeError, match="expected weights with a sum > 0, got a sum of 0"):
        treadle.multinomial(treadle.zeros(50), 2)


@pytest.mark.parametrize("uneven", [0.0, 0.3, 3.0])
def test_bins_of_any_width(uneven: float) -> None:
    """Numbers at the edges and beside them, outside, and NaN."""
    rng = np.random.default_rng(1)
    edges = np.sort(np.linspace(-1, 1.5, 41) + uneven * rng.uniform(-0.06, 0.06, 41))
    beside = [np.nextafter(edges, 9), np.nextafter(edges, -9)]
    x = np.concatenate([rng.standard_normal(100_000), edges, *beside, [-np.inf, np.inf]])
    weight = rng.integers(1, 5, len(x) + 1).astype(float)
    t = treadle.from_numpy(np.append(x, np.nan))
    found, _ = treadle.histogram(t, treadle.from_numpy(edges))
    np.testing.assert_array_equal(found.numpy(), np.histogram(x, edges)[0])
    found, _ = treadle.histogram(t, treadle.from_numpy(edges), weight=treadle.from_numpy(weight))
    np.testing.assert_array_equal(found.numpy(), np.histogram(x, edges, weights=weight[:-1])[0])


def test_counts_in_pieces() -> None:
    x = np.random.default_rng(2).integers(0, 50, 200_001)
    t = treadle.from_numpy(x)
    np.testing.assert_array_equal(treadle.bincount(t).numpy(), np.bincount(x))
    expected = np.repeat(np.arange(len(x)), x)
    np.testing.assert_array_equal(treadle.repeat_interleave(t).numpy(), expected)
    x[-1] = -1
    with pytest.raises(RuntimeError, match="expected repeats >= 0, got -1"):
        treadle.repeat_interleave(treadle.from_numpy(x))
    with pytest.raises(RuntimeError, match="expected repeats whose sum fits in int64"):
        treadle.repeat_interleave(treadle.full((20_000,), 2**62))
