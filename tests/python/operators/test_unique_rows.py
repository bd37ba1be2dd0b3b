"""unique_consecutive and unique_dim over more rows than one word of bits, or one piece of the
kernel's loop, holds.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle
from treadle import _C


def rows_of(count: int, longest: int, width: int) -> np.ndarray:
    """Runs of equal rows, and among them a NaN, which equals no other."""
    rng = np.random.default_rng(count)
    lengths = rng.integers(1, longest + 1, count)
    rows = np.repeat(rng.integers(-3, 3, (count, width)).astype(np.float32), lengths, 0)[:count]
    if count > 10:
        rows[5:8, 0] = np.nan
    return rows


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("longest", [1, 3, 200])
@pytest.mark.parametrize("count", [0, 1, 64, 129, 70_000])
def test_consecutive(count: int, longest: int, width: int, threads: int) -> None:
    rows = rows_of(count, longest, width)
    begins = np.ones(count, bool)
    begins[1:] = (rows[1:] != rows[:-1]).any(1)
    first = np.flatnonzero(begins)
    before = treadle.get_num_threads()
    treadle.set_num_threads(threads)
    try:
        for with_inverse, with_counts in [(True, True), (False, True), (True, False)]:
            x = treadle.tensor(rows[:, 0] if width == 1 else rows)
            values, inverse, counts = _C.unique_consecutive(
                x, with_inverse, with_counts, None if width == 1 else 0
            )
            np.testing.assert_array_equal(values.numpy(), x.numpy()[first])
            expected = np.cumsum(begins) - 1 if with_inverse else np.zeros(0)
            np.testing.assert_array_equal(inverse.numpy(), expected)
            lengths = np.diff(np.append(first, count)) if with_counts else np.zeros(0)
            np.testing.assert_array_equal(counts.numpy(), lengths)
    finally:
        treadle.set_num_threads(before)


@pytest.mark.parametrize("width", [1, 2])
def test_sorted_rows(width: int) -> None:
    rows = np.random.default_rng(0).integers(-9, 9, (70_000, width))
    values, inverse, counts = treadle.unique(
        treadle.tensor(rows), return_inverse=True, return_counts=True, dim=0
    )
    expected = np.unique(rows, return_inverse=True, return_counts=True, axis=0)
    np.testing.assert_array_equal(values.numpy(), expected[0])
    np.testing.assert_array_equal(inverse.numpy(), expected[1].reshape(-1))
    np.testing.assert_array_equal(counts.numpy(), expected[2])
