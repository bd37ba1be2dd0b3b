"""Products of float8 matrices with scales beside them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import pytest

import treadle
from treadle.testing import assert_close

GENERATOR = treadle.Generator().manual_seed(0)
A = treadle.randn(4, 16, generator=GENERATOR).to(treadle.float8_e4m3fn)
B = treadle.randn(8, 16, generator=GENERATOR).to(treadle.float8_e5m2).t()
ONE = treadle.tensor(1.0)
PRODUCT = A.to(treadle.float32) @ B.to(treadle.float32)


def test_scales_of_all_and_of_rows_and_columns() -> None:
    found = treadle._scaled_mm(A, B, ONE * 2, ONE * 3, out_dtype=treadle.float32)
    assert_close(found, PRODUCT * 6)
    rows, columns = treadle.rand(4, 1, generator=GENERATOR), treadle.rand(1, 8, generator=GENERATOR)
    found = treadle._scaled_mm(A, B, rows, columns, treadle.arange(8.0), out_dtype=treadle.float32)
    assert_close(found, PRODUCT * rows * columns + treadle.arange(8.0))


def test_the_dtype_of_the_result() -> None:
    assert treadle._scaled_mm(A, B, ONE, ONE).dtype == treadle.float8_e4m3fn
    assert treadle._scaled_mm(A, B, ONE, ONE, out_dtype=treadle.bfloat16).dtype == treadle.bfloat16
    out = treadle.empty(0, dtype=treadle.float64)
    assert treadle._scaled_mm(A, B, ONE, ONE, out=out) is out
    assert_close(out, PRODUCT.to(treadle.float64))


@pytest.mark.parametrize(
    "arguments, settings, error, said",
    [
        ((A[0], B, ONE, ONE), {}, RuntimeError, "input of two dimensions, got shape (16,)"),
        (
            (A, B.to(treadle.float32), ONE, ONE),
            {},
            ValueError,
            "mat2 of a float8 dtype or float4_e2m1fn_x2, got treadle.float32",
        ),
        (
            (A, B, treadle.ones(4), ONE),
            {},
            ValueError,
            "scale_a of one number or of shape (4, 1), in float32, or scales of blocks, got shape "
            "(4,) in treadle.float32",
        ),
        (
            (A, B, ONE, ONE),
            {"scale_result": ONE},
            NotImplementedError,
            "scale_result = None, got a tensor; divide by it afterwards",
        ),
        (
            (A, B, ONE, ONE),
            {"out": treadle.empty(4, 8), "out_dtype": treadle.bfloat16},
            RuntimeError,
            "out of dtype treadle.bfloat16, got treadle.float32",
        ),
    ],
)
def test_what_does_not_fit(
    arguments: Any, settings: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as info:
        treadle._scaled_mm(*arguments, **settings)
    assert str(info.value) == f"_scaled_mm: expected {said}"
