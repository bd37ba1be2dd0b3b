"""The array API standard's special cases of pointwise functions: infinities, NaN, signed zeros.

NumPy follows the same tables, those of IEEE 754 and C99. The tables themselves are in
test_array_api_tables.py and test_array_api_complex.py.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import treadle

xp = treadle.array_api
inf, nan = math.inf, math.nan

VALUES = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 2.5, -2.5, 3.0, -3.0]
UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log "
    "log10 log1p log2 logical_not negative positive reciprocal round sign signbit sin sinh sqrt "
    "square tan tanh trunc"
).split()
BINARY = (
    "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal "
    "logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal pow "
    "remainder subtract"
).split()
# Without expm1 and sign, where the standard says more than NumPy does.
COMPLEX_UNARY = (
    "abs acos acosh asin asinh atan atanh conj cos cosh exp isfinite isinf isnan log log10 "
    "log1p log2 negative reciprocal sin sinh sqrt square tan tanh"
).split()
DTYPES = ("float32", "float64")


def identical(a: np.ndarray, e: np.ndarray, eps: float, where: str) -> None:
    """Equal, NaN for NaN, zeros by their sign; finite values up to rounding."""
    assert a.dtype == e.dtype, where
    np.testing.assert_allclose(a, e, rtol=8 * eps, atol=0, err_msg=where)
    if e.dtype.kind == "f":
        zero = e == 0
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(e[zero]), err_msg=where)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, dtype: str) -> None:
    x = np.asarray(VALUES * 5, dtype)  # long enough for whole vectors
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    identical(getattr(xp, name)(xp.from_dlpack(x)).numpy(), expected, np.finfo(dtype).eps, name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, dtype: str) -> None:
    pairs = np.asarray(list(itertools.product(VALUES, VALUES)), dtype)
    x, y = pairs[:, 0], pairs[:, 1]
    # The standard leaves open: which of two zeros, the rest of infinities and by zero.
    if name in ("maximum", "minimum"):
        settled = ~((x == 0) & (y == 0))
    elif name in ("floor_divide", "remainder"):
        settled = ~((np.isinf(x) & (name == "remainder")) | (y == 0))
    else:
        settled = np.ones(len(x), bool)
    x, y = np.ascontiguousarray(x[settled]), np.ascontiguousarray(y[settled])
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
        if name == "floor_divide":  # of infinities, the standard's is the quotient
            expected = np.where(np.isinf(x) | np.isinf(y), x / y, expected)
    result = getattr(xp, name)(xp.from_dlpack(x), xp.from_dlpack(y)).numpy()
    for a, b, got, wanted in zip(x, y, result, expected):
        where = f"{name}({a}, {b})"
        identical(np.atleast_1d(got), np.atleast_1d(wanted), np.finfo(dtype).eps, where)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", COMPLEX_UNARY)
def test_complex(name: str, dtype: str) -> None:
    parts = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.5, 2.5]
    x = np.asarray([complex(a, b) for a in parts for b in parts], dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    result = getattr(xp, name)(xp.from_dlpack(x)).numpy()
    assert result.dtype == expected.dtype
    eps = 16 * np.finfo(dtype).eps
    for value, got, wanted in zip(x, result, expected):
        message = f"{name}({value}) = {got}, expected {wanted}"
        if name not in ("isfinite", "isinf", "isnan", "abs"):
            # An infinity in any direction, and NaN in any part, are one value each where C99
            # leaves the rest open.
            if np.isinf(wanted):
                assert np.isinf(got), message
                continue
            if np.isnan(wanted):
                assert np.isnan(got) or np.isinf(got), message
                continue
        np.testing.assert_allclose(got, wanted, rtol=eps, atol=eps, err_msg=message)


def test_exact_rounding() -> None:
    x = xp.asarray([0.5, 1.5, 2.5, -0.5, -1.5, 4.4, -4.6])
    assert xp.round(x).tolist() == [0, 2, 2, -0.0, -2, 4, -5]
    z = xp.asarray([0.5 + 1.5j, 2.5 - 0.4j])
    assert xp.round(z).tolist() == [0 + 2j, 2 - 0j]


def test_clip_of_nan() -> None:
    x = xp.asarray([nan, 1.0, 5.0])
    assert xp.clip(x, 2, 3).tolist()[1:] == [2, 3] and xp.isnan(xp.clip(x, 2, 3))[0]
