"""Where functions are evaluated: every exponent and both signs, dense ranges, closer and closer to
the places where something happens, and the special numbers. The same points in every run.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Iterable

import numpy as np


def special(dtype: np.dtype) -> np.ndarray:
    """Zeros, infinities, NaN, and both ends of the denormal and of the normal numbers."""
    info = np.finfo(dtype)
    ends = [0, np.inf, info.max, info.tiny, info.smallest_subnormal, info.tiny / 2, 1, 0.5, 2, 3]
    return np.array([*ends, *(-e for e in ends), -0.0, np.nan], dtype)


def every_exponent(dtype: np.dtype, count: int, seed: int = 1) -> np.ndarray:
    """About `count` numbers of both signs whose exponents, denormal ones included, are spread
    evenly.
    """
    info = np.finfo(dtype)
    random = np.random.default_rng(seed)
    exponent = np.linspace(info.minexp - info.nmant, info.maxexp - 1, count).astype(int)
    mantissa = random.uniform(1, 2, count) * random.choice([-1, 1], count)
    with np.errstate(under="ignore"):
        return np.ldexp(mantissa, exponent).astype(dtype)


def uniform(dtype: np.dtype, reach: float, count: int, seed: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-reach, reach, count).astype(dtype)


def approaching(dtype: np.dtype, places: Iterable[float], steps: int = 25) -> np.ndarray:
    """Each place, its neighbours, and numbers at ever smaller distances on both sides."""
    found = []
    for place in np.array(list(places), dtype):
        size = np.abs(place) or dtype.type(1)
        step = size * np.exp2(-np.linspace(1, np.finfo(dtype).nmant, steps)).astype(dtype)
        beside = [np.nextafter(place, dtype.type(s)) for s in (-np.inf, np.inf)]
        found.append(np.concatenate([[place], beside, place + step, place - step]))
    return np.concatenate(found).astype(dtype) if found else np.zeros(0, dtype)


def on_a_line(
    dtype: np.dtype, count: int, places: Iterable[float] = (), reaches: Iterable[float] = ()
) -> np.ndarray:
    """About `count` numbers of the whole line, and those near `places`."""
    reaches = tuple(reaches) or (1.0, 10.0, 100.0, 800.0)
    return np.concatenate(
        [
            special(dtype),
            every_exponent(dtype, count // 2),
            *(uniform(dtype, r, count // (2 * len(reaches)), i) for i, r in enumerate(reaches)),
            approaching(dtype, places),
        ]
    )


def in_the_plane(dtype: np.dtype, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs: of independent exponents, of comparable numbers, and every pair of special ones."""
    random = np.random.default_rng(3)
    some = special(dtype)
    far = every_exponent(dtype, count // 4, 4)
    near = np.concatenate([uniform(dtype, r, count // 8, 5) for r in (1, 5, 40, 700)])
    xs = [np.repeat(some, len(some)), far, far, near]
    ys = [
        np.tile(some, len(some)),
        random.permutation(every_exponent(dtype, len(far), 6)),
        (far * random.uniform(0.5, 1, len(far))).astype(dtype),
        np.concatenate([uniform(dtype, r, count // 8, 7) for r in (2, 5, 40, 5)]),
    ]
    return np.concatenate(xs), np.concatenate(ys)


def complex_numbers(dtype: np.dtype, count: int, places: Iterable[complex] = ()) -> np.ndarray:
    """Finite numbers of the whole plane off the axes, dense about the origin, 1, i and `places`."""
    real = np.dtype(np.float32 if dtype == np.complex64 else np.float64)
    random = np.random.default_rng(8)

    def normal(n: int) -> np.ndarray:
        return random.choice([-1, 1], n) * random.uniform(0.5, 1, n)

    part = count // 4
    info = np.finfo(real)
    wild = [
        np.ldexp(normal(part), random.integers(info.minexp // 2, info.maxexp // 2, part))
        for _ in range(2)
    ]
    near = []
    for place in (0, 1, -1, 1j, -1j, *places):
        size = np.exp2(-random.uniform(0, info.nmant, part // 4))
        near.append(place + size * np.exp(1j * random.uniform(-np.pi, np.pi, part // 4)))
    found = np.concatenate(
        [
            wild[0] + 1j * wild[1],
            normal(part) * 10 + 1j * normal(part) * 10,
            normal(part) * np.log(info.max) + 1j * normal(part) * 100,
            normal(part) * 100 + 1j * normal(part) * np.log(info.max),
            *near,
        ]
    ).astype(dtype)
    return found[(found.real != 0) & (found.imag != 0)]
