"""sort and argsort beside NumPy, where keys and positions do not fit in 64 bits together."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle

LIMITS = np.iinfo(np.int64)


def _keys(case: str, count: int) -> np.ndarray:
    random = np.random.default_rng(0)
    if case == "all bits":
        return random.integers(LIMITS.min, LIMITS.max, count, endpoint=True)
    if case == "few":
        return random.choice([LIMITS.min, -1, 0, 1, LIMITS.max], count)
    near = random.integers(0, count // 4, count)  # alike but for their last bits
    near[random.choice(count, 3)] = [LIMITS.max, LIMITS.min, LIMITS.max - 1]
    return near if case == "near" else np.sort(near)


@pytest.mark.parametrize("count", [2, 17, 3000, 100_000])
@pytest.mark.parametrize("case", ["all bits", "few", "near", "sorted"])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_wide_keys(kind: type, case: str, count: int) -> None:
    keys = _keys(case, max(count, 8))[:count]
    keys = keys.view(np.float64) if kind is np.float64 and case == "all bits" else keys.astype(kind)
    keys = np.nan_to_num(keys)
    values, positions = treadle.sort(treadle.from_numpy(keys), stable=True)
    expected = np.argsort(keys, kind="stable")
    np.testing.assert_array_equal(positions.numpy(), expected)
    np.testing.assert_array_equal(values.numpy(), keys[expected])
    descending = treadle.argsort(treadle.from_numpy(keys), descending=True, stable=True)
    np.testing.assert_array_equal(keys[descending.numpy()], np.sort(keys)[::-1])


@pytest.mark.parametrize("count", [1, 7, 9, 1000, 16_383, 16_384, 70_001])
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.float16])
def test_narrow_values(kind: type, count: int) -> None:
    values = (np.random.default_rng(1).standard_normal((2, count)) * 60).astype(kind)
    found = treadle.msort(treadle.from_numpy(values).t()).t()
    np.testing.assert_array_equal(found.numpy(), np.sort(values, axis=1))


@pytest.mark.parametrize("k", (0, 1))
def test_topk_of_a_scalar_is_the_scalar(k):
    values, indices = treadle.tensor(1.5).topk(k)
    assert values.shape == indices.shape == () and values.item() == 1.5 and indices.item() == 0
