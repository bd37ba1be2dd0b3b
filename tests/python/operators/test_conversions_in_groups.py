"""Conversions of many elements at once give what conversions of one element give."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle

INTEGERS = [
    treadle.int8,
    treadle.uint8,
    treadle.int16,
    treadle.uint16,
    treadle.int32,
    treadle.uint32,
    treadle.int64,
    treadle.uint64,
]
# Numbers that int32 does not hold, or only just.
BORDERS = [
    np.nan,
    np.inf,
    -np.inf,
    -0.0,
    2.0**31,
    -(2.0**31),
    2.0**31 - 128,
    -(2.0**31) - 256,
    2.0**32,
    2.0**40,
    -(2.0**40),
    2.0**63,
    -(2.0**63),
    2.0**64,
    1e30,
]


@pytest.mark.parametrize("to", INTEGERS, ids=str)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_numbers_outside_of_int32(kind: type, to: treadle.dtype) -> None:
    numbers = (np.random.default_rng(0).random(1000).astype(kind) - kind(0.5)) * kind(2.0**31)
    # One group has none of them, some have one, at any place, and one has many.
    for place, number in enumerate(BORDERS):
        numbers[100 + place * 37] = number
    numbers[900 : 900 + len(BORDERS)] = BORDERS
    x = treadle.from_numpy(numbers)
    together = x.to(to)
    one_by_one = treadle.stack([x[i].to(to) for i in range(len(numbers))])
    np.testing.assert_array_equal(together.numpy(), one_by_one.numpy())
    # The loop begins at any element.
    np.testing.assert_array_equal(x[3:].to(to).numpy(), together[3:].numpy())


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_integers_within_int32(kind: type, count: int) -> None:
    numbers = ((np.random.default_rng(0).random(count) - 0.5) * 2.0**32 * 0.99).astype(kind)
    x = treadle.from_numpy(numbers)
    for to in (np.int32, np.int64):
        found = x.to(treadle.int32 if to is np.int32 else treadle.int64)
        np.testing.assert_array_equal(found.numpy(), numbers.astype(to))


@pytest.mark.parametrize("count", [0, 1, 7, 64, 1001])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_bools(kind: type, count: int) -> None:
    flags = np.random.default_rng(0).random(count) > 0.5
    # A bool may be any byte, of which all but 0 are true.
    bytes_ = np.where(flags, np.arange(count) % 255 + 1, 0).astype(np.uint8)
    x = treadle.from_numpy(bytes_.view(np.bool_))
    to = treadle.float32 if kind is np.float32 else treadle.float64
    np.testing.assert_array_equal(x.to(to).numpy(), flags.astype(kind))


@pytest.mark.parametrize("count", [1, 7, 8, 33, 1001])
@pytest.mark.parametrize("kind", ["bool", "float32", "float64", *(str(t)[8:] for t in INTEGERS)])
def test_all_pairs(kind: str, count: int) -> None:
    numbers = np.random.default_rng(0).integers(0, 128, count).astype(kind)
    numbers[::3] = 0
    x = treadle.from_numpy(numbers)
    for to in (treadle.bool, treadle.float32, treadle.float64, *INTEGERS):
        expected = numbers.astype(str(to)[8:])
        np.testing.assert_array_equal(x.to(to).numpy(), expected)
        np.testing.assert_array_equal(x[1:].to(to).numpy(), expected[1:])
