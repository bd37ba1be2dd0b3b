"""Exchange of tensors with other libraries without a copy, through DLPack.

other.from_dlpack(to_dlpack(x))
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
from typing import Any

from treadle._C import Tensor
from treadle.functional import from_dlpack


class DLDeviceType(enum.IntEnum):
    """The kinds of devices, as `__dlpack_device__` numbers them."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule over the memory of a tensor, which another library takes once."""
    return tensor.__dlpack__()


__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
