"""The Python array API standard, version 2025.12: what `x.__array_namespace__()` returns.

    xp = x.__array_namespace__()
    xp.sum(x, axis=(0, 2), keepdims=True)

The names of `treadle` itself have PyTorch's signatures and meanings. Where the standard's differ
(`axis`, `keepdims`, promotion, what `sort`, `max` and `std` return), the functions here are thin
ones over the same operators. Creation functions give an Array, a tensor whose operators are the
standard's, and what is computed from one is an Array, too.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib as _importlib
from math import e, inf, nan, pi
from typing import Any as _Any

from treadle import _C
from treadle.array_api._creation import *
from treadle.array_api._dtypes import astype, can_cast, finfo, iinfo, isdtype, result_type
from treadle.array_api._info import __array_namespace_info__
from treadle.array_api._manipulation import *
from treadle.array_api._pointwise import *
from treadle.array_api._products import matmul, matrix_transpose, tensordot, vecdot
from treadle.array_api._reductions import *
from treadle.array_api._searching import *

__array_api_version__ = "2025.12"

newaxis = None
bool = _C.bool
int8, int16, int32, int64 = _C.int8, _C.int16, _C.int32, _C.int64
uint8, uint16, uint32, uint64 = _C.uint8, _C.uint16, _C.uint32, _C.uint64
float32, float64 = _C.float32, _C.float64
complex64, complex128 = _C.complex64, _C.complex128


def __getattr__(name: str) -> _Any:
    if name in ("fft", "linalg"):
        return _importlib.import_module(f"treadle.array_api.{name}")
    raise AttributeError(f"module 'treadle.array_api' has no attribute '{name}'")
