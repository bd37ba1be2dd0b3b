"""The array API standard's special cases of complex functions, row by row; C99 has the same.

In `inf >0 -> inf 0` the real part is infinite, the imaginary one positive and finite. `±` before a
result leaves its sign open. A row holds for the conjugate number, too, with the conjugate result.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import math
from typing import Any, Callable

import numpy as np
import pytest

import treadle

xp = treadle.array_api
inf, nan, pi = math.inf, math.nan, math.pi
DTYPES = ("complex64", "complex128")

# Finite ones only: of moderate size, since the tables are no tests of accuracy.
CLASSES: dict[str, tuple[float, ...]] = {
    "±0": (0.0, -0.0),
    "±inf": (inf, -inf),
    ">0": (0.5, 1.0, 2.5),
    "not 0": (0.5, 1.0, -2.5),
    "finite": (0.0, -0.0, 0.5, -1.0, 2.5),
    "any": (0.0, -0.0, 0.5, -1.0, 2.5, inf, -inf, nan),
    "open": (0.0, -0.0, 0.5, -1.0, 2.5, nan),
}

TABLE = """
abs      ±inf any -> inf 0 | any ±inf -> inf 0 | nan finite -> nan 0 | finite nan -> nan 0
abs      nan nan -> nan 0 | ±0 finite -> abs(b) 0 | finite ±0 -> abs(a) 0
acos     ±0 0 -> pi/2 -0 | ±0 nan -> pi/2 nan | finite inf -> pi/2 -inf | not 0 nan -> nan nan
acos     -inf >0 -> pi -inf | inf >0 -> 0 -inf | -inf inf -> 3*pi/4 -inf | inf inf -> pi/4 -inf
acos     ±inf nan -> nan ±inf | nan finite -> nan nan | nan inf -> nan -inf | nan nan -> nan nan
acosh    ±0 0 -> 0 pi/2 | finite inf -> inf pi/2 | not 0 nan -> nan nan | 0 nan -> nan ±pi/2
acosh    -inf >0 -> inf pi | inf >0 -> inf 0 | -inf inf -> inf 3*pi/4 | inf inf -> inf pi/4
acosh    ±inf nan -> inf nan | nan finite -> nan nan | nan inf -> inf nan | nan nan -> nan nan
asinh    0 0 -> 0 0 | >0 inf -> inf pi/2 | finite nan -> nan nan | inf >0 -> inf 0
asinh    inf inf -> inf pi/4 | nan 0 -> nan 0 | nan not 0 -> nan nan | nan inf -> ±inf nan
asinh    inf nan -> inf nan | nan nan -> nan nan
atanh    0 0 -> 0 0 | 0 nan -> 0 nan | 1 0 -> inf 0 | >0 inf -> 0 pi/2 | not 0 nan -> nan nan
atanh    inf >0 -> 0 pi/2 | inf inf -> 0 pi/2 | inf nan -> 0 nan | nan finite -> nan nan
atanh    nan inf -> ±0 pi/2 | nan nan -> nan nan
cosh     0 0 -> 1 0 | 0 inf -> nan ±0 | 0 nan -> nan ±0 | not 0 inf -> nan nan
cosh     not 0 nan -> nan nan | inf 0 -> inf 0 | inf not 0 -> inf*cos(b) inf*sin(b)
cosh     inf inf -> ±inf nan
cosh     inf nan -> inf nan | nan ±0 -> nan ±0 | nan not 0 -> nan nan | nan nan -> nan nan
exp      ±0 0 -> 1 0 | finite inf -> nan nan | finite nan -> nan nan | inf 0 -> inf 0
exp      -inf finite -> 0*cos(b) 0*sin(b) | inf not 0 -> inf*cos(b) inf*sin(b)
exp      -inf inf -> ±0 ±0 | inf inf -> ±inf nan | -inf nan -> ±0 ±0 | inf nan -> ±inf nan
exp      nan 0 -> nan 0 | nan not 0 -> nan nan | nan nan -> nan nan
expm1    ±0 0 -> ±0 0 | finite inf -> nan nan | finite nan -> nan nan | inf 0 -> inf 0
expm1    -inf finite -> -1 0*sin(b) | inf not 0 -> inf*cos(b) inf*sin(b)
expm1    -inf inf -> -1 ±0 | inf inf -> ±inf nan | -inf nan -> -1 ±0 | inf nan -> ±inf nan
expm1    nan 0 -> nan 0 | nan not 0 -> nan nan | nan nan -> nan nan
log      -0 0 -> -inf pi | 0 0 -> -inf 0 | finite inf -> inf pi/2 | finite nan -> nan nan
log      -inf >0 -> inf pi | inf >0 -> inf 0 | -inf inf -> inf 3*pi/4 | inf inf -> inf pi/4
log      ±inf nan -> inf nan | nan finite -> nan nan | nan inf -> inf nan | nan nan -> nan nan
log1p    -1 0 -> -inf 0 | finite inf -> inf pi/2 | finite nan -> nan nan | -inf >0 -> inf pi
log1p    inf >0 -> inf 0 | -inf inf -> inf 3*pi/4 | inf inf -> inf pi/4 | ±inf nan -> inf nan
log1p    nan finite -> nan nan | nan inf -> inf nan | nan nan -> nan nan
sign     ±0 ±0 -> 0 0 | nan any -> nan nan | any nan -> nan nan  | not 0 0 -> unit(a) 0
sinh     0 0 -> 0 0 | 0 inf -> ±0 nan | 0 nan -> ±0 nan | >0 inf -> nan nan | >0 nan -> nan nan
sinh     inf 0 -> inf 0 | inf >0 -> inf*cos(b) inf*sin(b) | inf inf -> ±inf nan
sinh     inf nan -> ±inf nan | nan 0 -> nan 0 | nan not 0 -> nan nan | nan nan -> nan nan
sqrt     ±0 0 -> 0 0 | any inf -> inf inf | finite nan -> nan nan | -inf >0 -> 0 inf
sqrt     inf >0 -> inf 0 | -inf nan -> nan ±inf | inf nan -> inf nan | nan open -> nan nan
tanh     0 0 -> 0 0 | not 0 inf -> nan nan | not 0 nan -> nan nan | 0 inf -> 0 nan | 0 nan -> 0 nan
tanh     inf >0 -> 1 ±0 | inf inf -> 1 ±0 | inf nan -> 1 ±0 | nan 0 -> nan 0
tanh     nan not 0 -> nan nan | nan nan -> nan nan
isfinite nan any -> 0 0 | any nan -> 0 0 | ±inf any -> 0 0 | any ±inf -> 0 0 | finite finite -> 1 0
isinf    ±inf any -> 1 0 | any ±inf -> 1 0 | finite finite -> 0 0 | nan open -> 0 0
isnan    nan any -> 1 0 | any nan -> 1 0 | finite finite -> 0 0 | ±inf finite -> 0 0
round    nan inf -> nan inf | ±0 -inf -> a -inf | 0.5 -0.5 -> 0 -0 | 1.5 -2.5 -> 2 -2
negative ±0 ±0 -> -a -b | nan inf -> nan -inf
conj     ±0 ±0 -> a -b | nan inf -> nan -inf | inf nan -> inf nan
"""
# Functions defined through another function of the argument turned by a right angle.
TURNED = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh"}
# The branch cuts: (function, points on them, the sign of which part tells the sides apart).
CUTS: list[tuple[str, tuple[complex, ...], str]] = [
    ("log", (-1, -2.5), "imag"),
    ("log2", (-1, -2.5), "imag"),
    ("log10", (-1, -2.5), "imag"),
    ("log1p", (-2, -3.5), "imag"),
    ("sqrt", (-1, -4), "imag"),
    ("acos", (-2, 3), "imag"),
    ("asin", (-2, 3), "imag"),
    ("acosh", (-2, 0.5), "imag"),
    ("atanh", (-2, 3), "imag"),
    ("asinh", (2j, -3j), "real"),
    ("atan", (2j, -3j), "real"),
]


def rows() -> list[tuple[str, str]]:
    lines = (line.split(maxsplit=1) for line in TABLE.strip().splitlines())
    return [(name, row.strip()) for name, rest in lines for row in rest.split(" | ")]


def values(name: str) -> tuple[float, ...]:
    return CLASSES[name] if name in CLASSES else (float(name),)


def left_side(text: str) -> list[tuple[float, float]]:
    """All pairs of parts that the left side of a row stands for: `not 0 nan` are two names."""
    words = text.replace("not 0", "not_0").split()
    return list(itertools.product(*(values(w.replace("_", " ")) for w in words)))


def part(text: str, a: float, b: float) -> float:
    """The value of one part of the right side, without the mark of an open sign."""
    text = text.removeprefix("±")
    try:
        return float(text)
    except ValueError:
        names: dict[str, Any] = {"a": a, "b": b, "pi": pi, "inf": inf, "abs": abs}
        names |= {"cos": math.cos, "sin": math.sin, "unit": lambda v: math.copysign(1, v)}
        return float(eval(text, names))


def is_the(got: float, text: str, wanted: float, eps: float) -> bool:
    if math.isnan(wanted):
        return math.isnan(got)
    if text.startswith("±"):
        got, wanted = abs(got), abs(wanted)
    close = np.isclose(got, wanted, rtol=8 * eps, atol=0)
    return bool(close) and (wanted != 0 or math.copysign(1, got) == math.copysign(1, wanted))


def parts(x: Any) -> tuple[list[float], list[float]]:
    a = x.numpy()
    return np.real(a).astype(float).tolist(), np.imag(a).astype(float).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, row", rows())
def test_row(name: str, row: str, dtype: str) -> None:
    left, _, right = row.partition(" -> ")
    eps = float(np.finfo(dtype).eps)
    pairs = left_side(left)
    for side in (1, -1):
        x = np.asarray([complex(a, side * b) for a, b in pairs] * 5, dtype)
        re, im = parts(getattr(xp, name)(xp.from_dlpack(x)))
        flip = side if name in CONJUGATES else 1
        for z, (a, b), got_re, got_im in zip(x, pairs * 5, re, im):
            if side == -1 and name not in CONJUGATES:
                continue
            texts = right.split()
            shown = f"{name}({z}) = {got_re} + {got_im} j, expected {right}"
            assert is_the(got_re, texts[0], part(texts[0], a, b), eps), shown
            assert is_the(flip * got_im, texts[1], part(texts[1], a, b), eps), shown


# The rest take the parts for themselves, or give a real number.
CONJUGATES = ("acos acosh asinh atanh cosh exp expm1 log log1p sinh sqrt tanh").split()


def special(dtype: str) -> np.ndarray:
    both = itertools.product(CLASSES["any"], CLASSES["any"])
    return np.asarray([complex(a, b) for a, b in both], dtype)


def agree(got: Any, wanted: np.ndarray, open_: np.ndarray, name: str) -> None:
    """Both parts alike; of those in `open_` the sign does not matter."""
    rtol = 8 * np.finfo(got.dtype).eps
    for g, w in ((np.real(got), np.real(wanted)), (np.imag(got), np.imag(wanted))):
        np.testing.assert_allclose(np.abs(g), np.abs(w), rtol=rtol, err_msg=name)
        signed = ~(np.isnan(w) | open_)
        np.testing.assert_array_equal(np.signbit(g[signed]), np.signbit(w[signed]), err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*TURNED, "cos"])
def test_turned(name: str, dtype: str) -> None:
    """asin(z) is -j * asinh(j * z), and so on; cos(z) is cosh(j * z)."""
    z = special(dtype)
    turned = np.empty_like(z)
    turned.real, turned.imag = -z.imag, z.real
    inner = getattr(xp, TURNED.get(name, "cosh"))(xp.from_dlpack(turned)).numpy()
    wanted = np.empty_like(z)
    if name != "cos":
        wanted.real, wanted.imag = inner.imag, -inner.real
    else:
        wanted[:] = inner
    open_ = ~np.isfinite(z)
    agree(getattr(xp, name)(xp.from_dlpack(z)).numpy(), wanted, open_, name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*CONJUGATES, *TURNED, "cos", "log2", "log10", "square"])
def test_symmetries(name: str, dtype: str) -> None:
    """f(conj(z)) is conj(f(z)); some are odd or even."""
    z = special(dtype)
    f: Callable[[np.ndarray], np.ndarray] = lambda v: getattr(xp, name)(xp.from_dlpack(v)).numpy()
    open_ = ~np.isfinite(z)
    agree(f(np.conj(z)), np.conj(f(z)), open_, name)
    if name in ("asinh", "atanh", "sinh", "tanh"):
        agree(f(-z), -f(z), open_, name)
    if name == "cosh":
        agree(f(-z), f(z), open_, name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, points, side", CUTS)
def test_branch_cuts(name: str, points: tuple[complex, ...], side: str, dtype: str) -> None:
    """On a cut the sign of the zero says from which side the function is continued."""
    for point in points:
        for zero in (0.0, -0.0):
            step = math.copysign(1e-6, zero)
            if side == "imag":
                on, near = complex(complex(point).real, zero), complex(complex(point).real, step)
            else:
                on, near = complex(zero, complex(point).imag), complex(step, complex(point).imag)
            x = xp.asarray([on, near], dtype=getattr(xp, dtype))
            got = getattr(xp, name)(x).numpy()
            np.testing.assert_allclose(got[0], got[1], atol=1e-5, err_msg=f"{name}({on})")
            assert np.real(x.numpy())[0] == complex(on).real


@pytest.mark.parametrize("dtype", DTYPES)
def test_change_of_base(dtype: str) -> None:
    z = special(dtype)
    natural = xp.log(xp.from_dlpack(z)).numpy()
    for name, base in (("log2", 2), ("log10", 10)):
        wanted = np.empty_like(z)
        wanted.real, wanted.imag = natural.real / np.log(base), natural.imag / np.log(base)
        agree(getattr(xp, name)(xp.from_dlpack(z)).numpy(), wanted, np.zeros(len(z), bool), name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic(dtype: str) -> None:
    """Sums part by part; products and quotients of finite numbers by the textbook."""
    z = special(dtype)
    first, second = np.repeat(z, len(z)), np.tile(z, len(z))
    x, y = xp.from_dlpack(first), xp.from_dlpack(second)
    none = np.zeros(len(first), bool)
    wanted = np.empty_like(first)
    with np.errstate(invalid="ignore"):
        wanted.real, wanted.imag = first.real + second.real, first.imag + second.imag
    agree(xp.add(x, y).numpy(), wanted, none, "add")
    agree(xp.subtract(x, xp.negative(y)).numpy(), wanted, none, "subtract")
    finite = np.isfinite(first) & np.isfinite(second)
    a, b = first[finite], second[finite]
    np.testing.assert_allclose(xp.multiply(x, y).numpy()[finite], a * b, rtol=1e-6)
    some = b != 0
    np.testing.assert_allclose(
        xp.divide(x, y).numpy()[finite][some], a[some] / b[some], rtol=1e-6, atol=1e-12
    )
    whole = xp.asarray(complex(nan, nan), dtype=getattr(xp, dtype))
    for name in ("multiply", "divide"):
        result = getattr(xp, name)(whole, whole)
        assert xp.isnan(xp.real(result)) and xp.isnan(xp.imag(result))
    equal = np.asarray(xp.equal(x, y).tolist())
    np.testing.assert_array_equal(equal, first == second)
    np.testing.assert_array_equal(xp.not_equal(x, y).tolist(), ~equal)


@pytest.mark.parametrize("dtype", DTYPES)
def test_signs_of_zero_in_a_sum(dtype: str) -> None:
    numbers = (complex(-0.0, 0.0), complex(-0.0, -0.0))
    x, y = (xp.asarray(z, dtype=getattr(xp, dtype)) for z in numbers)
    total = xp.add(x, y)
    assert xp.signbit(xp.real(total)) and not xp.signbit(xp.imag(total))


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(dtype: str) -> None:
    """As exp(x2 * log(x1)) where that is a number; zero to the power of zero is one."""
    d = getattr(xp, dtype)
    x = xp.asarray([0.5 + 1j, -2 + 0j, -1 - 0.5j, 3j, 1 + 0j], dtype=d)
    for exponent in (0.5, 2.0, -1.0, 1.5 - 0.5j, 3.0, 0.0):
        wanted = xp.exp(xp.multiply(exponent, xp.log(x))).numpy()
        np.testing.assert_allclose(xp.pow(x, exponent).numpy(), wanted, rtol=1e-5, atol=1e-5)
    assert xp.pow(xp.asarray(0j, dtype=d), 0) == 1 and xp.pow(xp.asarray(0j, dtype=d), 2) == 0
    assert xp.isnan(xp.pow(xp.asarray(complex(nan, nan), dtype=d), 1.5))
