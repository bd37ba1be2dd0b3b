"""How checkpoints name the element type of a storage."""

from __future__ import annotations

import treadle

STORAGE_NAMES = {
    treadle.bool: "BoolStorage",
    treadle.uint8: "ByteStorage",
    treadle.int8: "CharStorage",
    treadle.int16: "ShortStorage",
    treadle.int32: "IntStorage",
    treadle.int64: "LongStorage",
    treadle.float16: "HalfStorage",
    treadle.bfloat16: "BFloat16Storage",
    treadle.float32: "FloatStorage",
    treadle.float64: "DoubleStorage",
    treadle.complex64: "ComplexFloatStorage",
    treadle.complex128: "ComplexDoubleStorage",
}
