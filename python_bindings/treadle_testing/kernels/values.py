"""The values that a line fills a tensor with.

uniform(-2.0,2.0)#3    numbers of an interval; the number after # is the seed
integers(-4,5)         whole numbers from -4 to 4
below(4)               indices from 0 to 3
special                NaN, infinities, zeros of both signs, subnormal numbers among ordinary ones
{1.5,nan}              these, again and again
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from math import prod
from typing import Any, Callable, Mapping, Optional

import numpy as np

import treadle

from .line import Fill, Tensor


def _kind(dtype: str) -> str:
    if dtype == "bool":
        return "b"
    if dtype.startswith("uint"):
        return "u"
    if dtype.startswith("int"):
        return "i"
    return "c" if "complex" in dtype else "f"


def default(dtype: str) -> Fill:
    """The fill of a tensor whose line gives none."""
    kind = _kind(dtype)
    if kind == "b":
        return Fill("bits")
    if kind in "iu":
        return Fill("integers", (0 if kind == "u" else -4, 5))
    return Fill("uniform", (-2.0, 2.0))


def _special(dtype: str, count: int, rng: np.random.Generator) -> np.ndarray:
    info = treadle.finfo(getattr(treadle, dtype))
    tiny, largest = float(info.tiny), float(info.max)
    found = [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, tiny / 4, -tiny / 4, largest]
    found += [-largest, 1.0, -1.0, 0.5, 3.0, -2.25]
    return rng.choice(np.array(found), count)


def _uniform(dtype: str, count: int, rng: np.random.Generator, low: Any, high: Any) -> np.ndarray:
    real = rng.uniform(low, high, count)
    return real + 1j * rng.uniform(low, high, count) if _kind(dtype) == "c" else real


def _of(value: float) -> Callable[..., np.ndarray]:
    return lambda dtype, count, rng: np.full(count, value)


_WORDS: Mapping[str, Callable[..., np.ndarray]] = {
    "uniform": _uniform,
    "integers": lambda dtype, count, rng, low, high: rng.integers(low, high, count),
    "below": lambda dtype, count, rng, n: rng.integers(0, max(n, 1), count),
    "bits": lambda dtype, count, rng: rng.random(count) < 0.5,
    "special": lambda dtype, count, rng: (
        _special(dtype, count, rng)
        if _kind(dtype) == "f"
        else _special("float32", count, rng) + 1j * _special("float32", count, rng)
    ),
    "nan": _of(np.nan),
    "inf": _of(np.inf),
    "zeros": _of(0.0),
    "minuszero": _of(-0.0),
    "ones": _of(1.0),
    "subnormal": lambda dtype, count, rng: (
        float(treadle.finfo(getattr(treadle, dtype)).tiny) * rng.uniform(-0.9, 0.9, count)
    ),
    "range": lambda dtype, count, rng: np.arange(count),
}
WORDS = frozenset(_WORDS)


def numbers(tensor: Tensor, count: int, again: int = 0) -> np.ndarray:
    """So many numbers for a tensor; `again` makes others of the same kind."""
    fill = tensor.fill or default(tensor.dtype)
    if not fill.word:
        if not fill.numbers:
            raise ValueError("line: expected numbers in {}, got none")
        values = np.array(fill.numbers)
        return np.resize(values[:: -1 if again else 1], count)
    if fill.word not in _WORDS:
        raise ValueError(
            f"line: expected values in ({', '.join(sorted(WORDS))}), got '{fill.word}'"
        )
    rng = np.random.default_rng([fill.seed, again])
    try:
        with np.errstate(all="ignore"):
            return np.asarray(_WORDS[fill.word](tensor.dtype, count, rng, *fill.numbers))
    except TypeError:
        raise ValueError(
            f"line: expected numbers for the values '{fill.word}', got {fill}"
        ) from None


def array(tensor: Tensor, again: int = 0) -> np.ndarray:
    """The values of a tensor, of its NumPy type in memory, contiguous."""
    from .buffers import storage_type

    values = numbers(tensor, prod(tensor.shape), again).reshape(tensor.shape)
    kind = storage_type(tensor.dtype)
    with np.errstate(all="ignore"):
        if str(kind) == tensor.dtype:
            if kind.kind != "c" and np.iscomplexobj(values):
                values = values.real
            return np.ascontiguousarray(values).astype(kind).reshape(tensor.shape)
    wide = treadle.complex128 if _kind(tensor.dtype) == "c" else treadle.float64
    t = treadle.tensor(values.astype(np.complex128 if wide is treadle.complex128 else np.float64))
    t = t.to(getattr(treadle, tensor.dtype))
    bits = {1: treadle.uint8, 2: treadle.int16, 4: treadle.int32, 8: treadle.int64}[t.itemsize]
    return t.view(bits).numpy().reshape(tensor.shape)


def write(target: np.ndarray, tensor: Tensor, again: int = 0) -> None:
    """Writes the values into the tensor's memory; elements that share memory get the last one."""
    if target.size == 0:
        return
    if tensor.strides is not None and any(
        s == 0 and n > 1 for s, n in zip(tensor.strides, tensor.shape)
    ):
        # One value along dimensions that repeat it, so that a huge view is written quickly.
        narrow = tuple(1 if s == 0 else n for s, n in zip(tensor.strides, tensor.shape))
        index = tuple(slice(0, n) for n in narrow)
        target[index] = array(Tensor(tensor.dtype, narrow, None, tensor.fill), again)
        return
    target[...] = array(tensor, again)


def with_fill(tensor: Tensor, fill: Optional[Fill]) -> Tensor:
    return Tensor(tensor.dtype, tensor.shape, tensor.strides, fill)
