"""The array API standard's tables of special cases, row by row: zeros with a sign, infinities, NaN.

A row names what the arguments may be and what the result is: `±0 <0 -> -inf` holds for either zero
with any negative number. Everything that a name stands for is tried.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import treadle

xp = treadle.array_api
inf, nan, pi = math.inf, math.nan, math.pi
DTYPES = ("float32", "float64")

POSITIVE = (0.5, 1.0, 1.5, 2.0, 3.0, 1e-30, 1e30)
NEGATIVE = tuple(-v for v in POSITIVE)
CLASSES: dict[str, tuple[float, ...]] = {
    "nan": (nan,),
    "±inf": (inf, -inf),
    "±0": (0.0, -0.0),
    "±1": (1.0, -1.0),
    "+finite": POSITIVE,
    "-finite": NEGATIVE,
    "nonzero": POSITIVE + NEGATIVE,
    "finite": (*POSITIVE, *NEGATIVE, 0.0, -0.0),
    ">0": (*POSITIVE, inf),
    "<0": (*NEGATIVE, -inf),
    ">1": (1.5, 2.0, 1e30, inf),
    "<1": (0.5, 0.0, -0.0, -1.0, -3.0, -inf),
    "<-1": (-1.5, -2.0, -1e30, -inf),
    "not 0": (*POSITIVE, *NEGATIVE, inf, -inf, nan),
    "not 1": (*NEGATIVE, 0.5, 2.0, 0.0, inf, -inf, nan),
    "not nan": (*POSITIVE, *NEGATIVE, 0.0, -0.0, inf, -inf),
    "any": (*POSITIVE, *NEGATIVE, 0.0, -0.0, inf, -inf, nan),
    "integer": (1.0, 2.0, -3.0, 1e30, -1e30),
    "odd>0": (1.0, 3.0),
    "odd<0": (-1.0, -3.0),
    "other>0": (0.5, 2.0, 1.5, 1e30, inf),
    "other<0": (-0.5, -2.0, -1.5, -1e30, -inf),
    "fraction": (0.5, -0.5, 1.5, -1.5),
    "|x|>1": (1.5, -2.0, 3.0, 1e30, inf, -inf),
    "|x|<1": (0.5, -0.5, 1e-30, 0.0, -0.0),
}

UNARY = """
abs          nan -> nan | -0 -> 0 | -inf -> inf
acos         nan -> nan | >1 -> nan | <-1 -> nan | 1 -> 0
acosh        nan -> nan | <1 -> nan | 1 -> 0 | inf -> inf
asin         nan -> nan | >1 -> nan | <-1 -> nan | ±0 -> x1
asinh        nan -> nan | ±0 -> x1 | ±inf -> x1
atan         nan -> nan | ±0 -> x1 | inf -> pi/2 | -inf -> -pi/2
atanh        nan -> nan | <-1 -> nan | >1 -> nan | -1 -> -inf | 1 -> inf | ±0 -> x1
ceil         nan -> nan | ±0 -> x1 | ±inf -> x1 | integer -> x1 | -0.5 -> -0
cos          nan -> nan | ±0 -> 1 | ±inf -> nan
cosh         nan -> nan | ±0 -> 1 | ±inf -> inf
exp          nan -> nan | ±0 -> 1 | inf -> inf | -inf -> 0
expm1        nan -> nan | ±0 -> x1 | inf -> inf | -inf -> -1
floor        nan -> nan | ±0 -> x1 | ±inf -> x1 | integer -> x1 | 0.5 -> 0
isfinite     nan -> 0 | ±inf -> 0 | finite -> 1
isinf        nan -> 0 | ±inf -> 1 | finite -> 0
isnan        nan -> 1 | ±inf -> 0 | finite -> 0
log          nan -> nan | <0 -> nan | ±0 -> -inf | 1 -> 0 | inf -> inf
log10        nan -> nan | <0 -> nan | ±0 -> -inf | 1 -> 0 | inf -> inf
log1p        nan -> nan | <-1 -> nan | -1 -> -inf | ±0 -> x1 | inf -> inf
log2         nan -> nan | <0 -> nan | ±0 -> -inf | 1 -> 0 | inf -> inf
negative     nan -> nan | 0 -> -0 | -0 -> 0 | inf -> -inf | -inf -> inf
positive     any -> x1
reciprocal   nan -> nan | 0 -> inf | -0 -> -inf | inf -> 0 | -inf -> -0
round        nan -> nan | ±0 -> x1 | ±inf -> x1 | integer -> x1 | 0.5 -> 0 | -0.5 -> -0 | 1.5 -> 2
sign         nan -> nan | ±0 -> 0 | >0 -> 1 | <0 -> -1
signbit      0 -> 0 | -0 -> 1 | >0 -> 0 | <0 -> 1
sin          nan -> nan | ±0 -> x1 | ±inf -> nan
sinh         nan -> nan | ±0 -> x1 | ±inf -> x1
sqrt         nan -> nan | <0 -> nan | ±0 -> x1 | inf -> inf
square       nan -> nan | ±0 -> 0 | ±inf -> inf
tan          nan -> nan | ±0 -> x1 | ±inf -> nan
tanh         nan -> nan | ±0 -> x1 | inf -> 1 | -inf -> -1
trunc        nan -> nan | ±0 -> x1 | ±inf -> x1 | integer -> x1 | 0.5 -> 0 | -0.5 -> -0
"""

# Where the standard leaves a choice, the results stand beside each other: `inf or nan`.
BINARY = """
add          nan, any -> nan | any, nan -> nan | inf, -inf -> nan | -inf, inf -> nan
add          inf, inf -> inf | -inf, -inf -> -inf | ±inf, finite -> x1 | finite, ±inf -> x2
add          -0, -0 -> -0 | -0, 0 -> 0 | 0, -0 -> 0 | 0, 0 -> 0 | ±0, nonzero -> x2
add          nonzero, ±0 -> x1
atan2        nan, any -> nan | any, nan -> nan | >0, ±0 -> pi/2 | <0, ±0 -> -pi/2
atan2        ±0, >0 -> x1 | ±0, 0 -> x1 | 0, -0 -> pi | 0, <0 -> pi | -0, -0 -> -pi
atan2        -0, <0 -> -pi | +finite, inf -> 0 | +finite, -inf -> pi | -finite, inf -> -0
atan2        -finite, -inf -> -pi | inf, finite -> pi/2 | -inf, finite -> -pi/2
atan2        inf, inf -> pi/4 | inf, -inf -> 3*pi/4 | -inf, inf -> -pi/4 | -inf, -inf -> -3*pi/4
copysign     not nan, <0 -> -abs(x1) | not nan, -0 -> -abs(x1) | not nan, 0 -> abs(x1)
copysign     not nan, >0 -> abs(x1)
divide       nan, any -> nan | any, nan -> nan | ±inf, ±inf -> nan | ±0, ±0 -> nan
divide       0, >0 -> 0 | -0, >0 -> -0 | 0, <0 -> -0 | -0, <0 -> 0 | >0, 0 -> inf | >0, -0 -> -inf
divide       <0, 0 -> -inf | <0, -0 -> inf | inf, +finite -> inf | inf, -finite -> -inf
divide       -inf, +finite -> -inf | -inf, -finite -> inf | +finite, inf -> 0
divide       +finite, -inf -> -0 | -finite, inf -> -0 | -finite, -inf -> 0
equal        nan, any -> 0 | any, nan -> 0 | inf, inf -> 1 | -inf, -inf -> 1 | ±0, ±0 -> 1
equal        inf, -inf -> 0 | ±inf, finite -> 0 | finite, ±inf -> 0 | ±0, nonzero -> 0
floor_divide nan, any -> nan | any, nan -> nan | ±inf, ±inf -> nan | ±0, ±0 -> nan
floor_divide 0, >0 -> 0 | -0, >0 -> -0 | 0, <0 -> -0 | -0, <0 -> 0 | >0, 0 -> inf
floor_divide >0, -0 -> -inf | <0, 0 -> -inf | <0, -0 -> inf | inf, +finite -> inf or nan
floor_divide inf, -finite -> -inf or nan | -inf, +finite -> -inf or nan
floor_divide -inf, -finite -> inf or nan | +finite, inf -> 0 | +finite, -inf -> -0 or -1
floor_divide -finite, inf -> -0 or -1 | -finite, -inf -> 0
greater      nan, any -> 0 | any, nan -> 0 | ±0, ±0 -> 0 | inf, finite -> 1 | -inf, finite -> 0
greater_equal nan, any -> 0 | any, nan -> 0 | ±0, ±0 -> 1 | inf, inf -> 1
hypot        ±inf, any -> inf | any, ±inf -> inf | ±0, not nan -> abs(x2) | not nan, ±0 -> abs(x1)
hypot        finite, nan -> nan | nan, finite -> nan | nan, nan -> nan | 1e30, 1e-30 -> 1e30
less         nan, any -> 0 | any, nan -> 0 | ±0, ±0 -> 0 | finite, inf -> 1 | finite, -inf -> 0
less_equal   nan, any -> 0 | any, nan -> 0 | ±0, ±0 -> 1 | inf, inf -> 1
logaddexp    nan, any -> nan | any, nan -> nan | inf, not nan -> inf | not nan, inf -> inf
logaddexp    -inf, -inf -> -inf | -inf, nonzero -> x2
maximum      nan, any -> nan | any, nan -> nan | inf, not nan -> inf | -inf, not nan -> x2
minimum      nan, any -> nan | any, nan -> nan | -inf, not nan -> -inf | inf, not nan -> x2
multiply     nan, any -> nan | any, nan -> nan | ±inf, ±0 -> nan | ±0, ±inf -> nan
multiply     inf, >0 -> inf | inf, <0 -> -inf | -inf, >0 -> -inf | -inf, <0 -> inf | >0, inf -> inf
multiply     <0, inf -> -inf | >0, -inf -> -inf | <0, -inf -> inf | 0, 0 -> 0 | -0, -0 -> 0
multiply     0, -0 -> -0 | -0, 0 -> -0 | 0, -finite -> -0 | -finite, 0 -> -0 | -0, -finite -> 0
multiply     -0, +finite -> -0
nextafter    nan, any -> nan | any, nan -> nan | -0, 0 -> 0 | 0, -0 -> -0
not_equal    nan, any -> 1 | any, nan -> 1 | inf, -inf -> 1 | -inf, inf -> 1 | ±0, ±0 -> 0
not_equal    inf, inf -> 0 | -inf, -inf -> 0 | ±inf, finite -> 1
pow          not 1, nan -> nan | any, ±0 -> 1 | nan, not 0 -> nan | |x|>1, inf -> inf
pow          |x|>1, -inf -> 0 | ±1, ±inf -> 1 | 1, not nan -> 1 | |x|<1, inf -> 0
pow          |x|<1, -inf -> inf | inf, >0 -> inf | inf, <0 -> 0 | -inf, odd>0 -> -inf
pow          -inf, other>0 -> inf | -inf, odd<0 -> -0 | -inf, other<0 -> 0 | 0, >0 -> 0
pow          0, <0 -> inf | -0, odd>0 -> -0 | -0, other>0 -> 0 | -0, odd<0 -> -inf
pow          -0, other<0 -> inf | -finite, fraction -> nan
remainder    nan, any -> nan | any, nan -> nan | ±inf, ±inf -> nan | any, ±0 -> nan
remainder    ±0, >0 -> 0 | ±0, <0 -> -0 | ±inf, finite -> nan | +finite, inf -> x1
remainder    +finite, -inf -> -inf | -finite, inf -> inf | -finite, -inf -> x1
"""


def rows(table: str) -> list[tuple[str, str]]:
    """(function, row) for every row."""
    lines = (line.split(maxsplit=1) for line in table.strip().splitlines())
    return [(name, row.strip()) for name, rest in lines for row in rest.split(" | ")]


def values(name: str) -> tuple[float, ...]:
    return CLASSES[name] if name in CLASSES else (float(name),)


def result(text: str, x1: float, x2: float = nan) -> float:
    """The value of an expression of the right side."""
    try:
        return float(text)  # -0 keeps its sign
    except ValueError:
        return float(eval(text, {"x1": x1, "x2": x2, "pi": pi, "abs": abs}))


def is_the(got: Any, wanted: float, dtype: str) -> bool:
    """The same number, zeros by their sign; up to rounding where it is no exact one."""
    if math.isnan(wanted):
        return bool(np.isnan(got))
    close = np.isclose(got, wanted, rtol=4 * np.finfo(dtype).eps, atol=0)
    return bool(close) and (wanted != 0 or bool(np.signbit(got) == np.signbit(wanted)))


def check(name: str, row: str, dtype: str) -> None:
    left, _, right = row.partition(" -> ")
    pairs = list(itertools.product(*map(values, left.split(", "))))
    # Long enough for whole vectors and a rest behind them.
    columns = [np.asarray([p[i] for p in pairs] * 11, dtype) for i in range(len(pairs[0]))]
    got = getattr(xp, name)(*map(xp.from_dlpack, columns)).numpy()
    for i, arguments in enumerate(zip(*columns)):
        wanted = [result(text, *map(float, arguments)) for text in right.split(" or ")]
        shown = f"{name}{arguments} = {got[i]}, expected {right}"
        if got.dtype == bool:
            assert [bool(got[i])] == wanted, shown
        else:
            assert got.dtype == dtype
            assert any(is_the(got[i], w, dtype) for w in wanted), shown


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, row", rows(UNARY))
def test_of_one(name: str, row: str, dtype: str) -> None:
    check(name, row, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, row", rows(BINARY))
def test_of_two(name: str, row: str, dtype: str) -> None:
    check(name, row, dtype)


def pairs(dtype: str) -> tuple[Any, Any]:
    both = np.asarray(list(itertools.product(CLASSES["any"], CLASSES["any"])), dtype)
    return tuple(xp.asarray(both[:, i].copy()) for i in (0, 1))


def identical(a: Any, b: Any) -> bool:
    """The same numbers, zeros by their sign; any NaN is as good as another."""
    a, b = a.numpy(), b.numpy()
    same = np.array_equal(a, b, equal_nan=True)
    return same and np.array_equal(np.signbit(a[~np.isnan(a)]), np.signbit(b[~np.isnan(b)]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_function_by_another(dtype: str) -> None:
    """The functions that the standard defines through another, in every special case."""
    x, y = pairs(dtype)
    assert identical(xp.subtract(x, y), xp.add(x, xp.negative(y)))
    assert identical(xp.square(x), xp.multiply(x, x))
    assert identical(xp.reciprocal(x), xp.divide(1.0, x))
    assert identical(xp.add(x, y), xp.add(y, x))
    assert identical(xp.multiply(x, y), xp.multiply(y, x))
    for a, b in [(y, x), (x, xp.negative(y)), (xp.negative(x), y)]:
        assert identical(xp.hypot(x, y), xp.hypot(a, b))
    assert identical(xp.cosh(x), xp.cosh(xp.negative(x)))
    for name in ("sinh", "tanh", "asinh", "atanh"):
        f = getattr(xp, name)
        assert identical(f(xp.negative(x)), xp.negative(f(x)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_remainder_is_pythons(dtype: str) -> None:
    numbers = [v for v in CLASSES["nonzero"] if abs(v) < 10 and abs(v) > 0.1]
    for a, b in itertools.product(numbers, numbers):
        got = xp.remainder(xp.asarray(a, dtype=getattr(xp, dtype)), b).item()
        assert got == a % b and math.copysign(1, got) == math.copysign(1, b)
        assert math.copysign(1, (xp.asarray([a]) % b)[0].item()) == math.copysign(1, b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sign_of_nan(dtype: str) -> None:
    x = np.asarray([nan, -nan, 0.0, -0.0, 2.0, -inf], dtype)
    x[0], x[1] = np.copysign(x[0], 1), np.copysign(x[1], -1)
    first, second = np.repeat(x, len(x)), np.tile(x, len(x))
    signs = xp.signbit(xp.copysign(xp.from_dlpack(first), xp.from_dlpack(second))).numpy()
    np.testing.assert_array_equal(signs, np.signbit(second))
    assert xp.signbit(xp.from_dlpack(x)).tolist() == [False, True, False, True, False, True]


@pytest.mark.parametrize("dtype", DTYPES)
def test_clip(dtype: str) -> None:
    d = getattr(xp, dtype)
    x = xp.asarray([nan, -inf, -0.0, 1.0, inf], dtype=d)
    assert is_the(xp.clip(x, 0.5, 2)[0].item(), nan, dtype)
    assert xp.clip(x, 0.5, 2)[1:].tolist() == [0.5, 0.5, 1, 2]
    assert xp.clip(x, -inf, inf)[1:].tolist() == [-inf, 0, 1, inf]
    scalar = xp.asarray(nan, dtype=d)
    for limits in [(nan, None), (None, nan), (nan, 1.0), (0.0, nan), (scalar, None)]:
        assert xp.all(xp.isnan(xp.clip(x, *limits)))


# ---- reductions, conversions, sets ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_of_nothing(dtype: str) -> None:
    x = xp.empty((0, 2), dtype=getattr(xp, dtype))
    assert xp.sum(x, axis=0).tolist() == [0, 0] and xp.prod(x, axis=0).tolist() == [1, 1]
    assert not xp.any(x) and xp.all(x) and xp.count_nonzero(x) == 0
    for name in ("mean", "var", "std"):
        assert xp.all(xp.isnan(getattr(xp, name)(x, axis=0))) and xp.isnan(getattr(xp, name)(x))
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises((ValueError, IndexError, RuntimeError)):
            getattr(xp, name)(x, axis=0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("correction", [2, 2.0, 2.5, 7])
def test_no_degrees_of_freedom(dtype: str, correction: float) -> None:
    x = xp.asarray([[1.0, 5.0], [2.0, 2.0]], dtype=getattr(xp, dtype))
    for name in ("var", "std"):
        spread = getattr(xp, name)(x, axis=1, correction=correction)
        assert spread.dtype == x.dtype and xp.all(xp.isnan(spread))
        assert not xp.any(xp.isnan(getattr(xp, name)(x, axis=1, correction=1.5)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_pass_nan_on(dtype: str) -> None:
    x = xp.asarray([[1.0, nan, inf], [1.0, 2.0, -inf]], dtype=getattr(xp, dtype))
    for name in ("max", "min", "sum", "prod", "mean", "var", "std"):
        f = getattr(xp, name)
        assert xp.isnan(f(x)) and xp.isnan(f(x, axis=1)).tolist()[0]
    assert xp.max(x[1, :]) == 2 and xp.min(x[1, :]) == -inf and xp.sum(x[1, :]) == -inf
    assert xp.isnan(xp.cumulative_sum(x, axis=1)).tolist() == [[False, True, True], [False] * 3]
    assert xp.isnan(xp.cumulative_prod(x, axis=1)).tolist() == [[False, True, True], [False] * 3]
    assert xp.all(x) and xp.any(x[:, 1:2]) and xp.count_nonzero(x) == 6
    assert xp.nonzero(xp.asarray([nan, -0.0, 0.0, inf]))[0].tolist() == [0, 3]


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_are_one_value(dtype: str) -> None:
    x = xp.asarray([0.0, -0.0, nan, nan], dtype=getattr(xp, dtype))
    assert xp.unique_counts(x).counts.tolist() == [2, 1, 1]
    assert xp.unique_values(x).shape == xp.unique_inverse(x).values.shape == (3,)
    assert xp.argmax(x[:2]) == 0 and xp.argmin(x[:2]) == 0
    assert xp.argsort(x[:2]).tolist() == [0, 1]
    assert xp.searchsorted(x[:1], x[1:2], side="right").tolist() == [1]


def test_truth() -> None:
    """The truth of arrays as bool, both as elements and as conditions of Python."""
    for dtype in (*DTYPES, "complex64", "complex128"):
        x = xp.asarray([nan, inf, -inf, 0.0, -0.0, 1e-30], dtype=getattr(xp, dtype))
        assert xp.astype(x, xp.bool).tolist() == [True, True, True, False, False, True]
        assert [bool(v) for v in xp.unstack(x)] == [True, True, True, False, False, True]
    z = xp.asarray([0j, complex(0, nan), complex(nan, 0), complex(-0.0, -0.0), 1j])
    assert xp.astype(z, xp.bool).tolist() == [False, True, True, False, True]


def test_numbers_of_python() -> None:
    assert math.isnan(float(xp.asarray(nan))) and float(xp.asarray(-inf)) == -inf
    assert math.copysign(1, float(xp.asarray(-0.0))) == -1
    assert complex(xp.asarray(-inf)) == complex(-inf, 0) and complex(xp.asarray(True)) == 1
    assert int(xp.asarray(-2.7)) == -2 and int(xp.asarray(True)) == 1 and int(xp.asarray(-0.0)) == 0
    for value, error in [(nan, ValueError), (inf, OverflowError), (-inf, OverflowError)]:
        with pytest.raises(error):
            int(xp.asarray(value))
    for convert in (int, float):
        with pytest.raises(TypeError):
            convert(xp.asarray(1j))
