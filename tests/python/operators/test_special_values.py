"""Pointwise operators at the points where the result is known exactly: zeros of both signs, ones,
halves, powers of two, infinities and NaN, as NumPy and the C standard's Annex F have them.

Every operator of the model whose expression is one function that NumPy or the C library has is
tested, in each place of short and long arrays: whole vectors and what is left of them.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import math
from typing import Any, Callable, Optional

import numpy as np
import pytest

import treadle
from treadle_testing.catalogue import Operator, operators
from treadle_testing.expression import function as reference

INFINITE = [math.inf, -math.inf, math.nan]
POINTS = [0.0, -0.0, *INFINITE, *(s * 2.0**e for e in range(-3, 5) for s in (1, -1))]
POINTS += [s * v for v in (1.5, 2.5, 3.0, 3.5, 2.0**-60, 2.0**60) for s in (1, -1)]
FEW = [0.0, -0.0, *INFINITE, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0]
LENGTHS = (1, 3, 4, 7, 8, 17, 64)


def _without_reference(tree: Any) -> bool:
    return tree["op"] != "call" or any(a["op"] != "name" for a in tree["args"])


def _by_math(function: Callable[[float], float]) -> Callable[..., Any]:
    """A function of Python's `math` on arrays; what it refuses is a pole."""

    def value(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.inf

    return lambda x: np.asarray([value(v) for v in x.tolist()], x.dtype)


def _reference(op: Operator) -> Optional[Callable[..., Any]]:
    """NumPy's function, or Python's; None where neither has one."""
    name = op.json["pointwise"]["tree"]["fn"]
    function = reference(name)
    if isinstance(function, np.ufunc) and getattr(np, function.__name__, None) is function:
        return function
    return _by_math(getattr(math, name)) if name in ("erf", "erfc", "lgamma") else None


def _tested(count: int, dtype: str) -> list[Operator]:
    """Operators of `count` tensors whose expression is one known function, of them in order."""
    found = []
    for op in operators():
        names = [a["name"] for a in op.args if a["type"]["base"] == "Tensor"]
        if op.kind != "pointwise" or len(names) != count or len(op.args) != count:
            continue
        if dtype not in op.dtypes or _without_reference(op.json["pointwise"]["tree"]):
            continue
        tree = op.json["pointwise"]["tree"]
        if [a["name"] for a in tree["args"]] == names and _reference(op) is not None:
            found.append(op)
    return found


def _is_known(expected: np.ndarray) -> np.ndarray:
    """Where a result is one that no rounding leads to: with few digits, infinite, or NaN."""
    if np.iscomplexobj(expected):
        return _is_known(expected.real) & _is_known(expected.imag)
    if expected.dtype.kind != "f":
        return np.ones(expected.shape, dtype=bool)
    fraction, _ = np.frexp(expected)
    return ~np.isfinite(expected) | (np.ldexp(fraction, 8) == np.trunc(np.ldexp(fraction, 8)))


def _same(a: np.ndarray, e: np.ndarray) -> np.ndarray:
    if np.iscomplexobj(e):
        return _same(a.real, e.real) & _same(a.imag, e.imag)
    same = (a == e) | ((a != a) & (e != e))
    if e.dtype.kind == "f":
        same &= (e != 0) | (np.signbit(a) == np.signbit(e))
    return same


def _check(op: Operator, arrays: list[np.ndarray]) -> None:
    with np.errstate(all="ignore"):
        reference = _reference(op)
        assert reference is not None
        expected = np.asarray(reference(*arrays))
    known = _is_known(expected)
    # An internal operator that is part of a public one is called by the public name.
    function = op.function if op.public else getattr(treadle, op.name.removeprefix("_"))
    for length in LENGTHS:
        # Each point is in each place of a vector once.
        for start in range(0, arrays[0].size, length):
            parts = [treadle.from_numpy(np.roll(a, -start)[:length].copy()) for a in arrays]
            result = function(*parts).numpy()
            e, k = (np.roll(v, -start)[:length] for v in (expected, known))
            wrong = k & ~_same(result, e)
            where = [np.roll(a, -start)[:length][wrong] for a in arrays]
            assert not wrong.any(), f"{op} of {where} is {result[wrong]}, expected {e[wrong]}"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", _tested(1, "float64"), ids=str)
def test_of_one_argument(op: Operator, dtype: str) -> None:
    _check(op, [np.asarray(POINTS, dtype)])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", _tested(2, "float64"), ids=str)
def test_of_two_arguments(op: Operator, dtype: str) -> None:
    pairs = np.asarray(list(itertools.product(FEW, FEW)), dtype)
    _check(op, [pairs[:, 0].copy(), pairs[:, 1].copy()])


# NumPy has no result for expm1 of an infinite real part, where the C standard's exp has one.
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    "op",
    [op for op in _tested(1, "complex128") if op.name not in ("expm1", "special_expm1")],
    ids=str,
)
def test_of_a_complex_argument(op: Operator, dtype: str) -> None:
    _check(op, [np.asarray([complex(x, y) for x, y in itertools.product(FEW, FEW)], dtype)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_frexp_at_the_ends(dtype: type) -> None:
    info = np.finfo(dtype)
    ends = [0, info.smallest_subnormal, info.tiny, info.tiny / 2, info.max, np.inf, 1, 0.75]
    x = np.concatenate([ends, np.negative(ends), [np.nan]]).astype(dtype)
    mantissa, exponent = treadle.frexp(treadle.from_numpy(x))
    finite = np.isfinite(x)
    expected = np.frexp(x)
    np.testing.assert_array_equal(mantissa.numpy()[finite], expected[0][finite])
    np.testing.assert_array_equal(exponent.numpy()[finite], expected[1][finite])
    np.testing.assert_array_equal(mantissa.numpy()[~finite], x[~finite])
    assert not exponent.numpy()[~finite].any()
    np.testing.assert_array_equal(np.signbit(mantissa.numpy()[:-1]), np.signbit(x[:-1]))
