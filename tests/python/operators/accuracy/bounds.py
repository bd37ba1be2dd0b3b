"""The table: how far from the exact value each transcendental operator may be.

`./dev test` holds every operator to its row, on the whole line or plane but for what `inside`, or
the points of its reference, leave out; docs/accuracy.md shows the table. The bounds hold with every
set of vector instructions, so they are above what one of them measures.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping

from . import units
from .units import Unit


@dataclass(frozen=True)
class Bound:
    """In ULP, of float32 and float64, and of complex64 and complex128 where there are any."""

    float32: float
    float64: float
    complex64: float | None = None
    complex128: float | None = None
    unit: Unit | None = None  # what it counts the last places of; without one, the value itself
    complex_unit: Unit | None = None
    range: str = "all numbers"
    inside: Callable[..., Any] | None = None  # `range` of arrays

    def of(self, dtype: str) -> float | None:
        return getattr(self, dtype)

    def unit_of(self, dtype: str) -> Unit | None:
        return self.complex_unit if dtype.startswith("complex") else self.unit


# The largest error of types with 16 bits, over all of their numbers: half for the last rounding,
# and what is left of float32's error.
OF_16_BITS = 0.51

# Of complex numbers these have no bound: where their terms cancel each other, no digit is left.
CANCELS = frozenset({"logaddexp", "silu_backward"})

DEGREES = "degrees y up to 100"
CORRECT = 0.51  # rounded once, from a result in float64

BOUNDS: Mapping[str, Bound] = {
    "sqrt": Bound(0.5, 0.5, 2, 2),
    "rsqrt": Bound(2, 2, 3, 3),
    "reciprocal": Bound(0.5, 0.5, 2, 2),
    "exp": Bound(1.1, 1.1, 2, 2),
    "exp2": Bound(1.1, 1.1, 3, 3, complex_unit=units.THOUSANDTH),
    "expm1": Bound(4, 4, 3, 3),
    "log": Bound(1.1, 1.1, 2, 2),
    "log2": Bound(2, 2, 3, 3),
    "log10": Bound(2, 2, 3, 3),
    "log1p": Bound(3, 3, 3, 3),
    "sin": Bound(3, 3, 2, 2),
    "cos": Bound(3, 3, 2, 2),
    "tan": Bound(1.1, 1.1, 4, 4),
    "asin": Bound(3, 3, 3, 3),
    "acos": Bound(2, 2, 4, 4),
    "atan": Bound(3, 3, 3, 3),
    "sinh": Bound(4, 4, 2, 2),
    "cosh": Bound(2, 2, 2, 2),
    "tanh": Bound(4, 4, 5, 5),
    "asinh": Bound(3, 3, 3, 3),
    "acosh": Bound(4, 4, 4, 4),
    "atanh": Bound(4, 4, 4, 4),
    "erf": Bound(1.1, 1.1),
    "erfc": Bound(3, 3),
    "erfinv": Bound(CORRECT, 3),
    "lgamma": Bound(5, 5),
    "digamma": Bound(CORRECT, 8, unit=units.ONE),
    "polygamma": Bound(CORRECT, 12, unit=units.LARGEST_DERIVATIVE),
    "sigmoid": Bound(3, 3, 4, 4),
    "silu": Bound(4, 4, 5, 5, unit=units.FACTOR, complex_unit=units.FACTOR),
    "silu_backward": Bound(16, 5, unit=units.SILU_SLOPE),
    "_gelu": Bound(6, 6, unit=units.SQUARE),
    "_gelu_tanh": Bound(8, 8, unit=units.TWO_SQUARES),
    "elu": Bound(4, 4),
    "celu": Bound(4, 4),
    "selu": Bound(6, 6),
    "softplus": Bound(4, 4),
    "log_sigmoid": Bound(4, 4),
    "mish": Bound(6, 6, unit=units.FACTOR),
    "logit": Bound(2, 2, unit=units.ONE),
    "sinc": Bound(4, 4, 4, 4, complex_unit=units.ARGUMENT),
    "_angle": Bound(0.5, 0.5, 2, 2),
    "atan2": Bound(2, 2),
    "hypot": Bound(1.1, 1.1),
    "pow": Bound(1.1, 1.1, 1.1, 1.1),
    "logaddexp": Bound(6, 6, unit=units.LARGER),
    "logaddexp2": Bound(6, 6, unit=units.LARGER),
    "xlogy": Bound(2, 2),
    "special_xlog1py": Bound(4, 4),
    "special_entr": Bound(2, 2),
    "i0": Bound(CORRECT, 6),
    "special_i0e": Bound(CORRECT, 6),
    "special_i1": Bound(CORRECT, 16),
    "special_i1e": Bound(CORRECT, 16),
    "special_bessel_j0": Bound(CORRECT, 6, unit=units.OSCILLATION),
    "special_bessel_j1": Bound(CORRECT, 6, unit=units.OSCILLATION),
    "special_bessel_y0": Bound(CORRECT, 6, unit=units.OSCILLATION),
    "special_bessel_y1": Bound(CORRECT, 6, unit=units.OSCILLATION),
    "special_modified_bessel_i0": Bound(CORRECT, 6),
    "special_modified_bessel_i1": Bound(CORRECT, 16),
    "special_modified_bessel_k0": Bound(CORRECT, 10),
    "special_modified_bessel_k1": Bound(CORRECT, 6),
    "special_scaled_modified_bessel_k0": Bound(CORRECT, 10),
    "special_scaled_modified_bessel_k1": Bound(CORRECT, 6),
    "special_spherical_bessel_j0": Bound(CORRECT, 2),
    "special_airy_ai": Bound(
        CORRECT, 16, unit=units.AIRY, range="x > -10⁹", inside=lambda x: ~(x < -1e9)
    ),
    "special_erfcx": Bound(CORRECT, 5),
    "special_ndtr": Bound(CORRECT, 5),
    "special_log_ndtr": Bound(CORRECT, 5),
    "special_ndtri": Bound(CORRECT, 5),
    "special_zeta": Bound(CORRECT, 16, unit=units.LARGEST_TERM),
    "igamma": Bound(CORRECT, 16, unit=units.LOGARITHM, range="x, y up to 10⁴"),
    "igammac": Bound(CORRECT, 16, unit=units.LOGARITHM, range="x, y up to 10⁴"),
    **{
        f"special_{shifted}chebyshev_polynomial_{kind}": Bound(
            CORRECT, 40, unit=units.DEGREE, range=DEGREES
        )
        for shifted in ("", "shifted_")
        for kind in "tuvw"
    },
    "special_hermite_polynomial_h": Bound(CORRECT, 16, unit=units.HERMITE, range=DEGREES),
    "special_hermite_polynomial_he": Bound(CORRECT, 16, unit=units.HERMITE_E, range=DEGREES),
    "special_laguerre_polynomial_l": Bound(CORRECT, 30, unit=units.LAGUERRE, range=DEGREES),
    "special_legendre_polynomial_p": Bound(CORRECT, 30, unit=units.ONE, range=DEGREES),
}
