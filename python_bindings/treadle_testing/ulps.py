"""The measure: the distance from the exact value in units of the last place (ULP) of that value.

Exact values are long doubles (or pairs of them, for complex numbers), which have at least eleven
bits more than the results. Overflow counts as the first number beyond the largest, so that a result
is not far off because it is infinite; denormal results have the unit of the smallest normal number.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Wide = np.longdouble
WideComplex = np.clongdouble


@dataclass(frozen=True)
class Format:
    """A format of floating-point numbers."""

    digits: int  # of the significand, in bits
    least: int  # exponent of the smallest normal number
    beyond: int  # exponent of the first power of two that overflows

    @staticmethod
    def of(dtype: str) -> Format:
        if dtype == "bfloat16":
            return Format(8, -126, 128)
        info = np.finfo({"complex64": "float32", "complex128": "float64"}.get(dtype, dtype))
        return Format(info.nmant + 1, info.minexp, info.maxexp)

    def unit(self, size: np.ndarray) -> np.ndarray:
        """The spacing of numbers at `size`."""
        exponent = np.frexp(size)[1] - 1
        return np.ldexp(Wide(1), np.maximum(exponent, self.least) - self.digits + 1)

    def within(self, x: np.ndarray) -> np.ndarray:
        limit = np.ldexp(Wide(1), self.beyond)
        return np.clip(x.astype(Wide), -limit, limit)


def ulps(
    got: np.ndarray,
    exact: np.ndarray,
    dtype: str,
    size: np.ndarray | None = None,
    signed_zeros: bool = True,
) -> np.ndarray:
    """Errors of real results. The unit is that of `size`, or of the exact value without one.

    Infinite where exactly one of the two is NaN, where an exact infinity was missed, and where an
    exact zero has the other sign (but where signs of zeros are not `signed_zeros`).
    """
    form = Format.of(dtype)
    with np.errstate(invalid="ignore"):
        distance = np.abs(form.within(got) - form.within(exact))
        error = distance / form.unit(np.abs(form.within(exact)) if size is None else size)
    error = np.where(np.isnan(got) & np.isnan(exact), 0, error).astype(np.float64)
    missed = np.isinf(exact) & (got.astype(Wide) != exact)
    turned = (exact == 0) & (got == 0) & (np.signbit(got) != np.signbit(exact)) & signed_zeros
    return np.where((np.isnan(got) != np.isnan(exact)) | missed | turned, np.inf, error)


def complex_ulps(
    got: np.ndarray, exact: np.ndarray, dtype: str, size: np.ndarray | None = None
) -> np.ndarray:
    """Errors of complex results by their norm: the unit is that of the exact value's modulus."""
    form = Format.of(dtype)
    parts = [
        form.within(g) - form.within(e) for g, e in ((got.real, exact.real), (got.imag, exact.imag))
    ]
    modulus = np.hypot(exact.real, exact.imag)
    error = np.hypot(*parts) / form.unit(form.within(modulus) if size is None else size)
    # Where one part overflows the other is what is left of it: NaN or any number.
    lost = (modulus >= np.ldexp(Wide(1), form.beyond)) & (np.isinf(got.real) | np.isinf(got.imag))
    error = np.where(lost, 0, error).astype(np.float64)
    return np.where(np.isnan(error), np.inf, error)
