"""How checkpoints name the element type of a storage."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import _C

# The storage of bytes without a type: the tensor over it says what they are.
UNTYPED_NAME = "UntypedStorage"

STORAGE_NAMES = {
    _C.bool: "BoolStorage",
    _C.uint8: "ByteStorage",
    _C.int8: "CharStorage",
    _C.int16: "ShortStorage",
    _C.int32: "IntStorage",
    _C.int64: "LongStorage",
    _C.float16: "HalfStorage",
    _C.bfloat16: "BFloat16Storage",
    _C.float32: "FloatStorage",
    _C.float64: "DoubleStorage",
    _C.complex64: "ComplexFloatStorage",
    _C.complex128: "ComplexDoubleStorage",
    # PyTorch has no storage types for what came after these.
    _C.uint16: UNTYPED_NAME,
    _C.uint32: UNTYPED_NAME,
    _C.uint64: UNTYPED_NAME,
    _C.float8_e4m3fn: UNTYPED_NAME,
    _C.float8_e5m2: UNTYPED_NAME,
    _C.float8_e4m3fnuz: UNTYPED_NAME,
    _C.float8_e5m2fnuz: UNTYPED_NAME,
    _C.float8_e8m0fnu: UNTYPED_NAME,
    _C.float4_e2m1fn_x2: UNTYPED_NAME,
    _C.complex32: UNTYPED_NAME,
    _C.bcomplex32: UNTYPED_NAME,
}

# Those of the whole numbers of a quantized dtype: only files have them.
QUANTIZED_STORAGE_NAMES = {
    _C.quint8: "QUInt8Storage",
    _C.qint8: "QInt8Storage",
    _C.qint32: "QInt32Storage",
}
