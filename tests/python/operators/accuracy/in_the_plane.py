"""References of the functions of two numbers; of the orthogonal polynomials the second is the
degree.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy as np
from scipy import special as sp

from . import points
from .on_a_line import ON_A_LINE, sigmoid
from .references import INF, LOG2E, NAN, PI, Reference, by_mpmath, mp, wide

Pairs = tuple[np.ndarray, np.ndarray]


def _logaddexp(a: Any, b: Any) -> Any:
    sum_ = np.maximum(a, b) + np.log1p(np.exp(-np.abs(a - b)))
    return np.where(np.isinf(a) & (a == b), a, sum_)


def _logaddexp2(a: Any, b: Any) -> Any:
    sum_ = np.maximum(a, b) + np.log1p(np.exp2(-np.abs(a - b))) * LOG2E
    return np.where(np.isinf(a) & (a == b), a, sum_)


def _product(log: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda x, y: np.where(np.isnan(y), y, np.where(x == 0, 0, x * log(y)))


def _silu_backward(g: Any, x: Any) -> Any:
    return g * (sigmoid(x) * (1 + x * sigmoid(-x)))


def _gelu_backward(g: Any, x: Any) -> Any:
    below = sp.ndtr(np.asarray(x, np.float64))
    return g * (below + x * np.exp(-x * x / 2) / np.sqrt(2 * PI))


def _c_library(f: Callable) -> Reference:
    return Reference(wide(f), by_c_library=True, points=points.in_the_plane)


# ---- around gamma -------------------------------------------------------------------------------


def _zeta(s: Any, q: Any) -> Any:
    """Euler and Maclaurin's formula; mpmath's own has only so many digits after the point."""
    total = mp.mpf(0)
    while q < s + 40:
        term = mp.power(q, -int(s) if q < 0 else -s)
        total += term
        q += 1
        if q > 1 and term < 1e-36 * total:
            return total
    power = mp.power(q, -s)
    total += power * q / (s - 1) + power / 2
    factor = s * power / q
    for k in range(1, 20):
        total += mp.bernoulli(2 * k) / mp.factorial(2 * k) * factor
        factor *= (s + 2 * k - 1) * (s + 2 * k) / (q * q)
    return total


def _zeta_ends(s: float, q: float) -> float:
    return NAN if np.isnan(s) or np.isnan(q) else float(sp.zeta(s, q))


def _polygamma_pairs(dtype: np.dtype, count: int) -> Pairs:
    """Few orders, each of many numbers."""
    x = [v for v in points.on_a_line(dtype, count // 4, (0, -1, -2), (3, 20, 100)) if v > -100]
    orders = np.repeat(np.array([0, 1, 2, 3, 7, 30], dtype), len(x))
    return orders, np.tile(np.array(x, dtype), 6)


def _polygamma(n: Any, x: Any) -> Any:
    order = int(n)
    if order == 0:
        return mp.digamma(x)
    sign = -1 if order % 2 == 0 else 1
    return sign * mp.factorial(order) * _zeta(mp.mpf(order + 1), x)


def _polygamma_ends(n: float, x: float) -> float:
    if n == 0:
        return ON_A_LINE["digamma"].exact(np.float64(x))
    return float(sp.polygamma(int(n), x)) if x != -INF else NAN


def _zeta_pairs(dtype: np.dtype, count: int) -> Pairs:
    """Orders above 1 and any base; below zero, where it is real, whole orders."""
    random = np.random.default_rng(11)
    part = count // 4
    s = [1 + 10 ** random.uniform(-3, 2, part), 1 + 10 ** random.uniform(-1, 1.5, part)]
    q = [10 ** random.uniform(-3, 3, part), random.uniform(0.5, 2, part)]
    s += [random.integers(2, 12, part).astype(float), 1 + 10 ** random.uniform(-1, 2, part)]
    q += [random.uniform(-30, 0, part), 10 ** random.uniform(-30, 30, part)]
    some = np.array([-INF, -2, -0.5, 0, 0.5, 1, 1.5, 2, 3, 100, INF, NAN])
    return (
        np.concatenate([*s, np.repeat(some, len(some))]).astype(dtype),
        np.concatenate([*q, np.tile(some, len(some))]).astype(dtype),
    )


def _gamma_pairs(dtype: np.dtype, count: int) -> Pairs:
    """Small, comparable and far apart; the pairs of ends."""
    random = np.random.default_rng(12)
    part = count // 4
    a = 10 ** random.uniform(-3, 2, part)
    large = 10 ** random.uniform(1, 4, part)
    some = np.array([-1, 0, 0.5, 1, 2, INF, NAN])
    even = random.uniform(0, 40, part)
    return (
        np.concatenate([a, a, large, even, np.repeat(some, 7)]).astype(dtype),
        np.concatenate(
            [
                10 ** random.uniform(-3, 2, part),
                a * random.uniform(0.5, 2, part),
                large * (1 + random.normal(0, 3, part) / np.sqrt(large)),
                random.uniform(0, 40, part),
                np.tile(some, 7),
            ]
        ).astype(dtype),
    )


def _lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def _upper(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def _inside_gamma(a: float, x: float) -> bool:
    return a > 0 and x > 0


# ---- polynomials --------------------------------------------------------------------------------

HIGHEST = 100  # degree that is compared


def _steps(first: Callable, following: Callable) -> Callable[[Any, Any], Any]:
    """A polynomial by its recurrence, with digits to spare."""

    def f(x: Any, degree: Any) -> Any:
        with mp.workdps(80):
            before, current = mp.mpf(1), first(x)
            for k in range(1, int(degree)):
                before, current = current, following(k, x, current, before)
            return before if int(degree) == 0 else current

    return f


def _polynomial(f: Callable, reach: float, shifted: bool = False) -> Reference:
    def pairs(dtype: np.dtype, count: int) -> Pairs:
        random = np.random.default_rng(13)
        x = np.concatenate(
            [
                random.uniform(-1, 1, count // 2),
                random.uniform(-reach, reach, count // 4),
                points.every_exponent(np.dtype(np.float32), count // 4),
                [-1, 0, 1, 1, NAN, 0.5, 0.5, -0.5],
            ]
        )
        n = np.concatenate(
            [
                np.floor(random.uniform(0, 1, len(x) - 8) ** 3 * HIGHEST),
                [7, 8, 9, 70, 3, NAN, -1, 2.75],
            ]
        )
        x = (x + 1) / 2 if shifted else x
        return x.astype(dtype), n.astype(dtype)

    def at_ends(x: float, n: float) -> float:
        return NAN if np.isnan(x) or np.isnan(n) else 0

    def g(x: Any, n: Any) -> Any:
        return f(2 * x - 1 if shifted else x, n)

    exact = by_mpmath(g, at_ends, lambda x, n: n >= 0)
    return Reference(exact, slow=3, points=pairs, signed_zeros=False)


def _chebyshev(first: Callable) -> Callable[[Any, Any], Any]:
    return _steps(first, lambda k, x, p, b: 2 * x * p - b)


_CHEBYSHEV = {
    "t": _chebyshev(lambda x: x),
    "u": _chebyshev(lambda x: 2 * x),
    "v": _chebyshev(lambda x: 2 * x - 1),
    "w": _chebyshev(lambda x: 2 * x + 1),
}
_HERMITE_H = _steps(lambda x: 2 * x, lambda k, x, p, b: 2 * (x * p - k * b))
_HERMITE_HE = _steps(lambda x: x, lambda k, x, p, b: x * p - k * b)
_LAGUERRE = _steps(lambda x: 1 - x, lambda k, x, p, b: ((2 * k + 1 - x) * p - k * b) / (k + 1))
_LEGENDRE = _steps(lambda x: x, lambda k, x, p, b: ((2 * k + 1) * x * p - k * b) / (k + 1))

IN_THE_PLANE: Mapping[str, Reference] = {
    "pow": _c_library(np.power),
    "atan2": _c_library(np.arctan2),
    "hypot": _c_library(np.hypot),
    "logaddexp": _c_library(_logaddexp),
    "logaddexp2": _c_library(_logaddexp2),
    "xlogy": _c_library(_product(np.log)),
    "special_xlog1py": _c_library(_product(np.log1p)),
    "silu_backward": _c_library(_silu_backward),
    "_gelu_backward": _c_library(_gelu_backward),
    "_elu_backward": _c_library(lambda g, x: np.where(x > 0, g, g * np.exp(x))),
    "softplus_backward": _c_library(lambda g, x: np.where(x > 20, g, g * sigmoid(x))),
    "special_zeta": Reference(
        by_mpmath(
            _zeta, _zeta_ends, lambda s, q: s > 1 and (q > 0 or (s == int(s) and q != int(q)))
        ),
        slow=5,
        points=_zeta_pairs,
    ),
    "polygamma": Reference(
        by_mpmath(_polygamma, _polygamma_ends, lambda n, x: x > 0 or x != int(x)),
        slow=6,
        points=_polygamma_pairs,
    ),
    "igamma": Reference(by_mpmath(_lower, sp.gammainc, _inside_gamma), slow=2, points=_gamma_pairs),
    "igammac": Reference(
        by_mpmath(_upper, sp.gammaincc, _inside_gamma), slow=2, points=_gamma_pairs
    ),
    **{
        f"special_{shifted}chebyshev_polynomial_{k}": _polynomial(f, 3, bool(shifted))
        for k, f in _CHEBYSHEV.items()
        for shifted in ("", "shifted_")
    },
    "special_hermite_polynomial_h": _polynomial(_HERMITE_H, 10),
    "special_hermite_polynomial_he": _polynomial(_HERMITE_HE, 10),
    "special_laguerre_polynomial_l": _polynomial(_LAGUERRE, 50),
    "special_legendre_polynomial_p": _polynomial(_LEGENDRE, 3),
}
