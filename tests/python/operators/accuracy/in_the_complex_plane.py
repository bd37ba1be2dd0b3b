"""References of the functions of complex numbers: mpmath's, off the axes, where branches agree."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping

import numpy as np

from . import points
from .references import mp, widen


@dataclass(frozen=True)
class ComplexReference:
    f: Callable[..., Any]
    places: tuple[complex, ...] = ()
    operands: int = 1

    def arguments(self, dtype: np.dtype, count: int) -> tuple[np.ndarray, ...]:
        z = points.complex_numbers(dtype, count, self.places)
        if self.operands == 1:
            return (z,)
        # Bases of every size; powers that do not overflow everywhere.
        random = np.random.default_rng(9)
        powers = (random.uniform(-4, 4, len(z)) + 1j * random.uniform(-4, 4, len(z))).astype(dtype)
        powers[: len(z) // 8] = powers[: len(z) // 8].real
        return z, powers

    def exact(self, *zs: np.ndarray) -> np.ndarray:
        def one(*numbers: complex) -> np.clongdouble:
            # mpmath's logarithms near 1 have only the digits that the sum with 1 has, and its sines
            # of large numbers only those that are left of a product with pi.
            sizes = [abs(part) for z in numbers for part in (z.real, z.imag) if part]
            with mp.workdps(40 + int(2 * max(abs(np.log10(sizes))))):
                value = mp.mpc(self.f(*(mp.mpc(complex(z)) for z in numbers)))
            result = np.zeros(1, np.clongdouble)
            result.real, result.imag = widen(value.real), widen(value.imag)
            return result[0]

        return np.array([one(*z) for z in zip(*zs)], np.clongdouble)


def _sigmoid(z: Any) -> Any:
    return 1 / (1 + mp.exp(-z))


def _sinc(z: Any) -> Any:
    return mp.sin(mp.pi * z) / (mp.pi * z)


def _log(base: int) -> Callable[[Any], Any]:
    return lambda z: mp.log(z) / mp.log(base)


POLES = (1j * np.pi, 3j * np.pi)
HALF = (np.pi / 2, np.pi, -3 * np.pi / 2)

IN_THE_COMPLEX_PLANE: Mapping[str, ComplexReference] = {
    "sqrt": ComplexReference(mp.sqrt),
    "rsqrt": ComplexReference(lambda z: 1 / mp.sqrt(z)),
    "reciprocal": ComplexReference(lambda z: 1 / z),
    "exp": ComplexReference(mp.exp),
    "exp2": ComplexReference(lambda z: mp.exp(z * mp.log(2))),
    "expm1": ComplexReference(mp.expm1, (2j * np.pi,)),
    "log": ComplexReference(mp.log),
    "log2": ComplexReference(_log(2)),
    "log10": ComplexReference(_log(10)),
    "log1p": ComplexReference(mp.log1p, (-2, -0.5 + 0.8660254j, -1e-4 + 0.0141418j)),
    "sin": ComplexReference(mp.sin, HALF),
    "cos": ComplexReference(mp.cos, HALF),
    "tan": ComplexReference(mp.tan, HALF),
    "asin": ComplexReference(mp.asin),
    "acos": ComplexReference(mp.acos),
    "atan": ComplexReference(mp.atan),
    "sinh": ComplexReference(mp.sinh, tuple(1j * h for h in HALF)),
    "cosh": ComplexReference(mp.cosh, tuple(1j * h for h in HALF)),
    "tanh": ComplexReference(mp.tanh, tuple(1j * h for h in HALF)),
    "asinh": ComplexReference(mp.asinh),
    "acosh": ComplexReference(mp.acosh),
    "atanh": ComplexReference(mp.atanh),
    "sigmoid": ComplexReference(_sigmoid, POLES),
    "silu": ComplexReference(lambda z: z * _sigmoid(z), POLES),
    "sinc": ComplexReference(_sinc, (2, 3)),
    "_angle": ComplexReference(mp.arg),
    "pow": ComplexReference(mp.power, operands=2),
}
