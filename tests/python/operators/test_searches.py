"""searchsorted in sequences of any length, for fewer and for more values than take their steps
together.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7, 8, 100, 5000])
@pytest.mark.parametrize("count", [1, 7, 8, 21, 5000])
def test_places(length: int, count: int, right: bool) -> None:
    rng = np.random.default_rng(length)
    highest = max(3, length // 2)
    sequences = np.sort(rng.integers(0, highest, (3, length)).astype(np.float32), 1)
    values = rng.integers(-1, highest + 1, (3, count)).astype(np.float32)
    values[1, 0] = np.nan
    side = "right" if right else "left"
    expected = [np.searchsorted(s, v, side=side) for s, v in zip(sequences, values)]
    s, v = treadle.tensor(sequences), treadle.tensor(values)
    np.testing.assert_array_equal(treadle.searchsorted(s, v, right=right).numpy(), expected)
    shared = treadle.searchsorted(s[0], v, right=right, out_int32=True)
    np.testing.assert_array_equal(
        shared.numpy(), [np.searchsorted(sequences[0], row, side=side) for row in values]
    )
    if length > 0:
        order = treadle.tensor(np.stack([rng.permutation(length) for _ in range(3)]))
        mixed = treadle.empty_like(s).scatter_(1, order, s)
        found = treadle.searchsorted(mixed, v, right=right, sorter=order)
        np.testing.assert_array_equal(found.numpy(), expected)


def test_the_greatest_number_has_its_place_too() -> None:
    line = treadle.tensor([0, 254, 255, 255], dtype=treadle.uint8)
    values = treadle.tensor([255] * 20, dtype=treadle.uint8)
    assert treadle.searchsorted(line, values).tolist() == [2] * 20
    assert treadle.searchsorted(line, values, right=True).tolist() == [4] * 20
