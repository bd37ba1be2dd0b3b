"""finfo and iinfo: the limits of floating and integer dtypes.

treadle.finfo(treadle.float32).eps     # 1.1920928955078125e-07
treadle.iinfo(treadle.int8).max        # 127
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional

from treadle import _C, _names

# dtype -> explicit mantissa bits, smallest exponent of a normal number, largest number.
_FLOATS = {
    _C.float16: (10, -14, 65504.0),
    _C.bfloat16: (7, -126, (2 - 2.0**-7) * 2.0**127),
    _C.float32: (23, -126, (2 - 2.0**-23) * 2.0**127),
    _C.float64: (52, -1022, (2 - 2.0**-52) * 2.0**1023),
    _C.float8_e4m3fn: (3, -6, 448.0),
    _C.float8_e5m2: (2, -14, 57344.0),
    _C.float8_e4m3fnuz: (3, -7, 240.0),
    _C.float8_e5m2fnuz: (2, -15, 57344.0),
    _C.float8_e8m0fnu: (0, -127, 2.0**127),
}
_INTEGERS = frozenset(
    getattr(_C, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
)
# The integers that quantized tensors consist of.
QUANTIZED = {_C.qint8: _C.int8, _C.quint8: _C.uint8, _C.qint32: _C.int32}


class finfo:
    """Limits of a floating dtype; of the parts, for a complex one."""

    __module__ = "treadle"  # what pickles name

    def __init__(self, dtype: Optional[_C.dtype] = None) -> None:
        dtype = _C.get_default_dtype() if dtype is None else dtype
        real = dtype.to_real() if isinstance(dtype, _C.dtype) else None
        if real not in _FLOATS:
            raise TypeError(
                f"finfo: expected a floating dtype, got {dtype}; use "
                f"{_names.spoken()}.iinfo for integers"
            )
        mantissa, low, self.max = _FLOATS[real]
        self.bits = 8 * real.itemsize
        self.dtype = repr(real).rpartition(".")[2]
        self.eps = 2.0**-mantissa
        # Without a sign, the smallest number is above 0.
        self.min = -self.max if real.is_signed else 2.0**low
        self.tiny = self.smallest_normal = 2.0**low
        self.resolution = 10.0 ** -int(mantissa * 0.30103)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype, or of the integers of a quantized one."""

    __module__ = "treadle"  # what pickles name

    def __init__(self, dtype: _C.dtype) -> None:
        whole = QUANTIZED.get(dtype, dtype)
        if whole not in _INTEGERS:
            raise TypeError(
                f"iinfo: expected an integer dtype, got {dtype}; see {_names.spoken()}.finfo"
            )
        self.bits = 8 * whole.itemsize
        self.min = -(2 ** (self.bits - 1)) if whole.is_signed else 0
        self.max = 2 ** (self.bits - 1 if whole.is_signed else self.bits) - 1
        self.dtype = repr(dtype).rpartition(".")[2]

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


# The beginnings of names of dtypes, and how they are abbreviated.
_SHORT = {
    "bcomplex": "bc", "bfloat": "bf", "complex": "c", "float": "f", "int": "i", "uint": "u",
}  # fmt: skip


def _abbreviated(self: _C.dtype) -> str:
    """The name in a few letters: `f32`, `i64`, `b8` for bool."""
    name = repr(self).rpartition(".")[2]
    if name == "bool":
        return "b8"
    for long, short in _SHORT.items():
        if name.startswith(long):
            return short + name[len(long) :].replace("_", "")
    return name


_C.dtype.abbr = property(_abbreviated)  # type: ignore[assignment]
