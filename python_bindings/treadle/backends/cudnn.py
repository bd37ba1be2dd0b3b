"""The switches of cuDNN, which computes convolutions and recurrent layers on CUDA devices.

    treadle.backends.cudnn.benchmark = True       # time the plans of each geometry once
    treadle.backends.cudnn.benchmark_limit = 0    # all of them; 10 unless it is set
    treadle.backends.cudnn.deterministic = True   # no choice by time, whatever benchmark says
    treadle.backends.cudnn.allow_tf32 = False     # products of float32 are products of float32

Every plan that is chosen gives the same bits each time, with and without `deterministic`.
Unless `enabled`, recurrent layers go step by step; convolutions have no other library.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
import sys
from types import ModuleType
from typing import Any, ContextManager, Optional

from treadle import _C, cuda
from treadle._C import Tensor
from treadle.backends._flags import set_for_a_while
from treadle.backends._loading import loaded

enabled: bool
benchmark_limit: int
fp32_precision = "none"
benchmark: bool
deterministic: bool
allow_tf32: bool


def _switch(name: str) -> Any:
    """An attribute that the devices' backend sees."""
    return property(
        lambda module: _C._math_switch(name),
        lambda module, on: _C._set_math_switch(name, bool(on)),
    )


class _Module(ModuleType):
    enabled = _switch("recurrent_library")
    benchmark = _switch("convolution_benchmark")
    benchmark_limit = property(
        lambda module: _C._convolution_candidates(),
        lambda module, most: _C._set_convolution_candidates(10 if most is None else most),
    )
    deterministic = _switch("convolution_deterministic")
    allow_tf32 = _switch("convolution_tf32")


sys.modules[__name__].__class__ = _Module


def is_available() -> bool:
    """Whether there is a CUDA device for the library to compute on."""
    return cuda.is_available()


def version() -> Optional[int]:
    """The version of the library, 91900 for 9.19.0; None without a CUDA device or the library."""
    if not is_available():
        return None
    backend = next(library for library in loaded() if "cuda" in library.devices)
    asked = ctypes.CDLL(backend.path).treadle_cudnn_version
    asked.restype = ctypes.c_size_t
    return asked() or None


def is_acceptable(tensor: Tensor) -> bool:
    """Whether the library can compute with a tensor."""
    return tensor.is_cuda and tensor.is_floating_point()


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: Optional[int] = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> ContextManager[None]:
    """The switches for a block."""
    return set_for_a_while(
        __name__,
        enabled=enabled,
        benchmark=benchmark,
        benchmark_limit=benchmark_limit,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )
