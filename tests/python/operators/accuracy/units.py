"""Sizes whose last place is the unit of an error, where that of the value itself would be no
measure: at zeros that are not those of a factor, and where the slope magnifies the rounding of an
intermediate number.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
from scipy.special import gamma

from treadle_testing.ulps import Format, Wide


@dataclass(frozen=True)
class Unit:
    text: str  # f: the exact value; x, y: the arguments
    size: Callable[..., Any]  # of |f|, the dtype and the arguments


def floor(text: str, least: Callable[..., Any]) -> Unit:
    """The larger of the value and of something."""
    return Unit(f"max(|f|, {text})", lambda f, dtype, *xs: np.fmax(f, np.abs(least(*xs))))


def grown(text: str, factor: Callable[..., Any]) -> Unit:
    return Unit(f"|f| ({text})", lambda f, dtype, *xs: f * factor(f, *xs))


def _tiny(f: Any, dtype: str, x: Any, *_: Any) -> Any:
    return np.fmax(f, np.abs(x) * np.ldexp(Wide(1), Format.of(dtype).least))


def _logarithm(f: Any, *xs: Any) -> Any:
    return 1 + np.abs(np.log(np.where(f > 0, f, 1)))


def _oscillation(x: Any) -> Any:
    return np.fmin(1, np.sqrt(2 / np.pi / np.fmax(np.abs(x), 0.1)))


def _airy(x: Any) -> Any:
    return np.where(x < 0, 0.56 / np.fmax(1, np.abs(x)) ** 0.25, 0)


def _silu_slope(f: Any, dtype: str, x: Any, y: Any) -> Any:
    least = np.ldexp(Wide(1), Format.of(dtype).least)
    return np.fmax(f, np.abs(x) * (1 + np.abs(y)) * np.fmax(np.exp(np.fmin(y, 0)), least))


def _largest_term(order: Any, x: Any) -> Any:
    """The largest term of the sums of zeta left of zero."""
    term = np.power(np.abs(x - np.round(x)), -order)
    return np.where((x < 0) & np.isfinite(term), term, 0)


def _largest_derivative(n: Any, x: Any) -> Any:
    term = _largest_term(n + 1, x) * gamma(n.astype(np.float64) + 1)
    return np.where(n == 0, 1, term)  # digamma's zeros are not exact


def _hermite(scale: int) -> Callable[[Any, Any], Any]:
    """Its bound between its zeros."""

    def size(x: Any, n: Any) -> Any:
        n = np.fmax(n, 0)
        between = x * x < 4 / scale * (n + 1)
        e = np.exp(np.where(between, x * x, 0) / (2 if scale == 2 else 4))
        return np.where(between, e * np.sqrt(gamma(n.astype(np.float64) + 1) * Wide(scale) ** n), 0)

    return size


def _laguerre(x: Any, n: Any) -> Any:
    between = (x > 0) & (x < 4 * n + 2)
    return np.where(between, np.exp(np.where(between, x, 0) / 2), 0)


ONE = floor("1", lambda *xs: np.ones_like(xs[0]))
FACTOR = Unit("max(|f|, |x| · smallest normal number)", _tiny)
SQUARE = grown("1 + x²", lambda f, x: 1 + x * x)
TWO_SQUARES = grown("1 + 2x²", lambda f, x: 1 + 2 * x * x)
LOGARITHM = grown("1 + |log f|", _logarithm)
LARGER = floor("max(x, y)", np.fmax)
OSCILLATION = floor("min(1, √(2/πx))", _oscillation)
AIRY = floor("0.56 |x|^-¼ where x < 0", _airy)
SILU_SLOPE = Unit("max(|f|, |x| (1 + |y|) · max(exp(min(y, 0)), smallest))", _silu_slope)
GRADIENT = floor("|x|", lambda g, x: np.abs(g))
LARGEST_TERM = floor("the largest term where y < 0", _largest_term)
LARGEST_DERIVATIVE = floor("the largest term where y < 0, 1 where x = 0", _largest_derivative)
ARGUMENT = grown("1 + |x|", lambda f, z: 1 + np.abs(z))
THOUSANDTH = grown("1 + |x| / 1000", lambda f, z: 1 + np.abs(z) / 1000)
DEGREE = floor("y + 1", lambda x, n: n + 1)
HERMITE = floor("exp(x²/2) √(2ʸ y!) where x² < 2y + 2", _hermite(2))
HERMITE_E = floor("exp(x²/4) √y! where x² < 4y + 4", _hermite(1))
LAGUERRE = floor("exp(x/2) where 0 < x < 4y + 2", _laguerre)
