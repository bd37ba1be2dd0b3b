"""Numbers of 4 bits, two in an element of float4_e2m1fn_x2: every code, every rounding."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle.ao.quantization.block_scaled import pack_float4, unpack_float4

# By the format: a sign, two bits of exponent with bias 1, one bit of mantissa.
CODES = np.array(
    [
        (-1.0) ** (code >> 3)
        * (
            (code & 1) * 0.5
            if code & 6 == 0
            else (1 + (code & 1) / 2) * 2.0 ** ((code >> 1 & 3) - 1)
        )
        for code in range(16)
    ],
    np.float32,
)


def code_of(value: float) -> int:
    """The code nearest to a value, of two the even one; too large is the largest."""
    distances = np.abs(CODES[:8].astype(np.float64) - min(abs(float(value)), 6.0))
    nearest = np.flatnonzero(distances == distances.min())
    code = int(next(c for c in nearest if len(nearest) == 1 or c % 2 == 0))
    return code | 8 * bool(np.signbit(value))


def rounded(values: np.ndarray) -> np.ndarray:
    """The codes of the packed values, in their order."""
    packed = pack_float4(treadle.from_numpy(values)).view(treadle.uint8).numpy()
    return np.stack((packed & 15, packed >> 4), -1).reshape(values.shape)


def test_the_codes_of_the_format() -> None:
    assert CODES.tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def test_every_byte_is_two_numbers_the_first_in_its_lower_half() -> None:
    every = treadle.arange(256, dtype=treadle.uint8)
    found = unpack_float4(every.view(treadle.float4_e2m1fn_x2)).numpy().reshape(256, 2)
    wanted = CODES[np.stack((every.numpy() & 15, every.numpy() >> 4), 1)]
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
    back = pack_float4(treadle.from_numpy(found)).view(treadle.uint8)
    assert treadle.equal(back.reshape(-1), every)


def test_rounding_at_the_middles_and_beside_them() -> None:
    middles = ((CODES[:7] + CODES[1:8]) / 2).astype(np.float32)
    assert middles.tolist() == [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5]
    values = [middles, CODES[:8], np.array([0, 1e-45, 1e-38, 7, 6.5, 1e30, np.inf], np.float32)]
    for known in (middles, CODES[:8]):
        values += [np.nextafter(known, np.float32(t)) for t in (0, np.inf)]
    case = np.concatenate(values)
    case = np.concatenate((case, -case)).astype(np.float32)
    np.testing.assert_array_equal(rounded(case), [code_of(v) for v in case])
    assert rounded(np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -5], np.float32)).tolist() == [
        *(0, 2, 2, 4, 4, 6, 6, 14)
    ]


def test_rounding_of_every_16_bit_float() -> None:
    halves = np.arange(2**16, dtype=np.uint16)
    for case in (
        halves.view(np.float16).astype(np.float32),
        (halves.astype(np.uint32) << 16).view(np.float32),
    ):
        known = case[~np.isnan(case)]
        known = known[: len(known) // 2 * 2]
        # By a table of the magnitudes' middles: up at a middle where the code above is even.
        middles = (CODES[:7] + CODES[1:8]) / 2
        sizes = np.abs(known)
        codes = np.searchsorted(middles, sizes, side="left")
        at = np.minimum(codes, 6)
        codes += (sizes == middles[at]) & (at % 2 == 1)
        np.testing.assert_array_equal(rounded(known), codes | 8 * np.signbit(known))


def test_infinities_and_nan_are_the_largest_numbers() -> None:
    case = np.array([np.inf, -np.inf, np.nan, -np.nan], np.float32)
    assert unpack_float4(pack_float4(treadle.from_numpy(case))).tolist() == [6, -6, 6, 6]


@pytest.mark.parametrize("dtype", [treadle.float64, treadle.bfloat16, treadle.float8_e5m2])
def test_other_dtypes_are_rounded_to_float32_first(dtype: treadle.dtype) -> None:
    values = treadle.tensor([[0.5, -3.0], [1.0, 4.0]]).to(dtype)
    packed = pack_float4(values)
    assert packed.shape == (2, 1) and packed.dtype == treadle.float4_e2m1fn_x2
    assert unpack_float4(packed).tolist() == [[0.5, -3.0], [1.0, 4.0]]


def test_strided_and_empty_tensors() -> None:
    values = treadle.tensor([[0.5, 1.0, 2.0, 3.0], [4.0, 6.0, -1.0, -2.0]])
    packed = pack_float4(values.t().contiguous().t())
    assert treadle.equal(unpack_float4(packed), values)
    assert unpack_float4(packed.t().contiguous().t()[1:]).tolist() == values[1:].tolist()
    assert pack_float4(treadle.ones(3, 0)).shape == (3, 0)
    assert unpack_float4(pack_float4(treadle.ones(0, 4))).shape == (0, 4)


@pytest.mark.parametrize(
    "call, error, said",
    [
        (
            lambda: pack_float4(treadle.ones(3)),
            RuntimeError,
            "_float4_bytes: expected a last dimension of even size, got shape (3,)",
        ),
        (
            lambda: pack_float4(treadle.tensor(1.0)),
            RuntimeError,
            "_float4_bytes: expected a last dimension of even size, got shape ()",
        ),
        (
            lambda: pack_float4(treadle.ones(2, dtype=treadle.int32)),
            TypeError,
            "pack_float4: expected a floating dtype of one number an element, got treadle.int32",
        ),
        (
            lambda: unpack_float4(treadle.ones(2)),
            TypeError,
            "unpack_float4: expected dtype float4_e2m1fn_x2, got treadle.float32",
        ),
        (
            lambda: unpack_float4(pack_float4(treadle.ones(2))[0]),
            RuntimeError,
            "_float4_values: expected a tensor of at least 1 dimension, got shape ()",
        ),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as info:
        call()
    assert str(info.value) == said
