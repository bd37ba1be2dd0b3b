"""How exact values are made: by the C library's long doubles where it has the function, by mpmath
where it has not, and at infinities, NaN and poles by SciPy or as PyTorch has it.

A reference takes arrays of one real dtype and gives long doubles. One with a `quick` form, SciPy's
in float64, is compared in float32 at many more numbers by that.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import mpmath
import numpy as np

from treadle_testing.ulps import Wide

from . import points

mp = mpmath.mp.clone()
mp.dps = 30
INF, NAN = float("inf"), float("nan")
PI = Wide("3.14159265358979323846264338327950288")
LOG2E = 1 / Wide("0.693147180559945309417232121458176568")


@dataclass(frozen=True)
class Reference:
    exact: Callable[..., np.ndarray]
    quick: Callable[..., np.ndarray] | None = None
    slow: int = 1  # divides the number of points
    by_c_library: bool = False  # cheap: many points
    places: tuple[float, ...] = (0.0, 1.0, -1.0)  # where to look closely
    reaches: tuple[float, ...] = ()
    points: Callable[[np.dtype, int], tuple[np.ndarray, ...]] | None = None
    signed_zeros: bool = True  # whether it tells the sign of an exact zero

    def arguments(self, dtype: np.dtype, count: int) -> tuple[np.ndarray, ...]:
        if self.points is not None:
            return self.points(dtype, count)
        return (points.on_a_line(dtype, count, self.places, self.reaches),)


def widen(value: Any) -> np.longdouble:
    """An mpmath number as a long double, to its last bit or so."""
    mantissa, exponent = mp.frexp(value)
    high = float(mantissa)
    low = float(mantissa - high)
    return np.ldexp(Wide(high) + Wide(low), max(-40000, min(40000, int(exponent))))


def by_mpmath(
    f: Callable[..., Any],
    at_ends: Callable[..., Any],
    inside: Callable[..., bool] = lambda *x: True,
) -> Callable[..., np.ndarray]:
    """`f` of mpmath where numbers are finite, `inside` holds and f has a value; else `at_ends` of
    float64.
    """

    def one(*xs: Any) -> np.longdouble:
        numbers = [float(x) for x in xs]
        if all(np.isfinite(numbers)) and inside(*numbers):
            try:
                value = f(*(mp.mpf(x) for x in numbers))
                if mp.isfinite(value) and value != 0:
                    return widen(value)
            except (ZeroDivisionError, ValueError):  # a pole
                pass
        with np.errstate(all="ignore"):
            return Wide(at_ends(*numbers))

    return np.vectorize(one, otypes=[Wide])


def wide(f: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A formula of NumPy, evaluated in long doubles."""
    return lambda *xs: f(*(np.asarray(x, dtype=Wide) for x in xs))
