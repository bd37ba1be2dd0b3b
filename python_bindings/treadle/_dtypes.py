"""finfo and iinfo: the limits of floating and integer dtypes.

treadle.finfo(treadle.float32).eps     # 1.1920928955078125e-07
treadle.iinfo(treadle.int8).max        # 127
"""

from __future__ import annotations

from typing import Optional

from treadle import _C

# dtype -> bits, explicit mantissa bits, smallest and largest exponent of a normal number.
_FLOATS = {
    _C.float16: (16, 10, -14, 15),
    _C.bfloat16: (16, 7, -126, 127),
    _C.float32: (32, 23, -126, 127),
    _C.float64: (64, 52, -1022, 1023),
}
_INTS = {
    _C.uint8: (8, False),
    _C.uint16: (16, False),
    _C.uint32: (32, False),
    _C.uint64: (64, False),
    _C.int8: (8, True),
    _C.int16: (16, True),
    _C.int32: (32, True),
    _C.int64: (64, True),
}


class finfo:
    """Limits of a floating dtype; of the parts, for a complex one."""

    def __init__(self, dtype: Optional[_C.dtype] = None) -> None:
        dtype = _C.get_default_dtype() if dtype is None else dtype
        real = dtype.to_real() if isinstance(dtype, _C.dtype) else None
        if real not in _FLOATS:
            raise TypeError(
                f"finfo: expected a floating dtype, got {dtype}; use treadle.iinfo for integers"
            )
        self.bits, mantissa, low, high = _FLOATS[real]
        self.dtype = repr(real).rpartition(".")[2]
        self.eps = 2.0**-mantissa
        self.max = (2.0 - self.eps) * 2.0**high
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0**low
        self.resolution = 10.0 ** -int(mantissa * 0.30103)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype."""

    def __init__(self, dtype: _C.dtype) -> None:
        if dtype not in _INTS:
            raise TypeError(f"iinfo: expected an integer dtype, got {dtype}; see treadle.finfo")
        self.bits, signed = _INTS[dtype]
        self.min = -(2 ** (self.bits - 1)) if signed else 0
        self.max = 2 ** (self.bits - 1 if signed else self.bits) - 1
        self.dtype = repr(dtype).rpartition(".")[2]

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
