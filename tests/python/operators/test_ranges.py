"""Ranges longer than a piece of the kernel's loop: each number is computed from its own place."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_floating_ranges(dtype: str) -> None:
    got = treadle.arange(-7.0, 10.0, 0.00017, dtype=getattr(treadle, dtype)).numpy()
    exact = -7.0 + 0.00017 * np.arange(100_000)
    np.testing.assert_array_equal(got, exact.astype(dtype))


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "uint8"])
@pytest.mark.parametrize("step", [1, -3, 0x1_0000_0001])
def test_whole_ranges(dtype: str, step: int) -> None:
    count = 100_000 if dtype.endswith(("32", "64")) and (dtype == "int64" or step < 9) else 60
    start = 200 if dtype == "uint8" else 5
    if step > 9 and dtype != "int64":
        step = 2
    end = start + step * count if dtype != "uint8" or step < 0 else 255
    numbers = list(range(start, end, step))
    got = treadle.arange(start, end, step, dtype=getattr(treadle, dtype))
    np.testing.assert_array_equal(got.numpy(), np.array(numbers, dtype))
