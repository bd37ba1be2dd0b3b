"""Counts of elements: histc over few and many bins, of numbers outside, and the weights that
multinomial refuses.
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
