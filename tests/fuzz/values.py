"""The values of a recipe's tensors: a few of a dtype, repeated as often as they are needed.

Example:

    Palette("special", 2).values("float32")   ->  [-inf, 0.0, -0.0, ...]
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Sequence

import numpy as np

import treadle

Values = list[Any]

DTYPES: dict[str, treadle.dtype] = {
    str(v).removeprefix("treadle."): v
    for v in vars(treadle).values()
    if isinstance(v, treadle.dtype)
}
NAN, INF = math.nan, math.inf
# The largest, smallest normal and smallest number above zero.
LIMITS = {
    "float16": (65504.0, 6.103515625e-05, 5.960464477539063e-08),
    "bfloat16": (3.3895313892515355e38, 1.1754943508222875e-38, 9.183549615799121e-41),
    "float32": (3.4028234663852886e38, 1.1754943508222875e-38, 1.401298464324817e-45),
    "float64": (1.7976931348623157e308, 2.2250738585072014e-308, 5e-324),
} | {
    name: (limits.max, limits.tiny, limits.tiny * limits.eps)
    for name, limits in ((n, treadle.finfo(v)) for n, v in DTYPES.items() if n.startswith("float8"))
}
PART = {
    "complex64": "float32",
    "complex128": "float64",
    "complex32": "float16",
    "bcomplex32": "bfloat16",
}
# The dtypes that tensors with values may have: others are but names, or only bytes.
FILLED = tuple(name for name in DTYPES if not name.startswith(("q", "float4")))
# Names of what a palette may hold; every dtype has each of them.
PALETTES = ("small", "ones", "zeros", "index", "negative", "special", "far")
ORDINARY = ("small", "ones", "index")


def is_integer(dtype: str) -> bool:
    return "int" in dtype


def integer_range(dtype: str) -> tuple[int, int]:
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _integers(name: str, dtype: str) -> Values:
    low, high = integer_range(dtype)
    values = {
        "small": [1, 2, 0, 3, -1, 2, 4, -3, 1, 5, -2],
        "ones": [1],
        "zeros": [0],
        "index": [0, 1, 1, 0, 2, 0, 1],
        "negative": [-1, -2, -5, -1, -100],
        "special": [low, high, 0, -1, 1, high - 1, low + 1],
        "far": [high, 100, low, 7, high // 2 + 1],
    }[name]
    return [min(max(v, low), high) for v in values]


def _floats(name: str, dtype: str) -> Values:
    largest, normal, least = LIMITS[dtype]
    return {
        "small": [0.5, 1.25, -0.75, 2.0, 0.0, -1.5, 0.25, 3.0, -0.125, 1.0, 0.625],
        "ones": [1.0],
        "zeros": [0.0],
        "index": [0.0, 1.0, 1.0, 2.0],
        "negative": [-1.0, -0.5, -3.0, -100.0],
        "special": [NAN, INF, -INF, 0.0, -0.0, least, largest, -largest, normal, 1.0],
        "far": [largest, -largest, 1e4, -1e4, largest / 2],
    }[name]


def palette(name: str, dtype: str) -> Values:
    """The values of one palette."""
    if dtype == "bool":
        return {"ones": [True], "zeros": [False]}.get(name, [True, False, False, True, True])
    if is_integer(dtype):
        return _integers(name, dtype)
    if dtype in PART:
        parts = _floats(name, PART[dtype])
        return [complex(v, parts[(3 * i + 1) % len(parts)]) for i, v in enumerate(parts)]
    return _floats(name, dtype)


def coerced(value: Any, dtype: str) -> Any:
    """`value` as a number that the dtype has."""
    if dtype == "bool":
        return bool(value)
    if isinstance(value, complex) and dtype not in PART:
        value = value.real
    if is_integer(dtype):
        low, high = integer_range(dtype)
        return min(max(int(value), low), high) if math.isfinite(value) else 0
    return complex(value) if dtype in PART else float(value)


class Data:
    """Values to fill a tensor with, in order and from the start again."""

    key: Any

    def values(self, dtype: str) -> Values:
        raise NotImplementedError


@dataclass(frozen=True)
class Palette(Data):
    """Values by name, beginning with the one numbered `shift`."""

    name: str
    shift: int = 0

    @property
    def key(self) -> Any:
        return self

    def values(self, dtype: str) -> Values:
        found = palette(self.name, dtype)
        shift = self.shift % len(found)
        return found[shift:] + found[:shift]


class Fixed(Data):
    """The values of an array, those of a sample."""

    def __init__(self, array: Any):
        self.array = np.asarray(array).reshape(-1)
        # By contents: a key by identity would outlive what it stands for.
        self.key = (self.array.dtype.str, self.array.tobytes())

    def values(self, dtype: str) -> Values:
        return [coerced(v, dtype) for v in self.array.tolist()] or [coerced(0, dtype)]


_POOLS: dict[Any, Any] = {}


def flat(data: Data, dtype: str, count: int) -> Any:
    """A tensor of `count` values, to be copied and not to be written."""
    key = data.key, dtype
    pool = _POOLS.get(key)
    if pool is None or pool.numel() < count:
        if len(_POOLS) > 20_000:
            _POOLS.clear()
        if isinstance(data, Fixed) and data.array.dtype.name == dtype and data.array.size >= count:
            pool = treadle.from_numpy(data.array.copy())
            _POOLS[key] = pool
            return pool[:count]
        values = data.values(dtype)
        pool = treadle.tensor(cycled(values, max(count, 256)), dtype=DTYPES[dtype])
        _POOLS[key] = pool
    return pool[:count]


def cycled(values: Sequence[Any], count: int) -> Values:
    """The first `count` of the values repeated without end."""
    return (list(values) * (count // len(values) + 1))[:count]


def literal(value: Any) -> str:
    """Python source of a number, or of a list or tuple of such."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, complex):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, tuple):
        return "(" + "".join(literal(v) + ", " for v in value).rstrip() + ")"
    if isinstance(value, (treadle.dtype, treadle.layout, treadle.memory_format)):
        return str(value)
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if isinstance(value, treadle.device):
        return f'treadle.device("{value}")'
    return repr(value)
