"""How checkpoints name the element type of a storage."""

from __future__ import annotations

import treadle

# Of bytes without a type: the tensor over it says what they are.
UNTYPED_NAME = "UntypedStorage"

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
    # PyTorch has no storage types for what came after these.
    treadle.uint16: UNTYPED_NAME,
    treadle.uint32: UNTYPED_NAME,
    treadle.uint64: UNTYPED_NAME,
    treadle.float8_e4m3fn: UNTYPED_NAME,
    treadle.float8_e5m2: UNTYPED_NAME,
    treadle.float8_e4m3fnuz: UNTYPED_NAME,
    treadle.float8_e5m2fnuz: UNTYPED_NAME,
    treadle.float8_e8m0fnu: UNTYPED_NAME,
    treadle.float4_e2m1fn_x2: UNTYPED_NAME,
    treadle.complex32: UNTYPED_NAME,
    treadle.bcomplex32: UNTYPED_NAME,
}
