"""CUDA devices. Their backend, of the package treadle-cuda, is loaded when one is first asked for;
its functions (treadle/_device/module.py) then take the place of those here, which say that there
is no device, and why.

    device = "cuda" if treadle.cuda.is_available() else "cpu"
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Literal, Union

from treadle import _C, _names
from treadle._C import OutOfMemoryError as OutOfMemoryError
from treadle._device import facade
from treadle._tensor import legacy_types
from treadle.cuda.graphs import *  # noqa: F403
from treadle.cuda.memory import *  # noqa: F403
from treadle.cuda.random import *  # noqa: F403
from treadle.cuda.streams import *  # noqa: F403

is_available, device_count, is_initialized, is_bf16_supported = facade.questions("cuda")
_Device = Union[None, int, str, _C.device]

has_half = True
has_magma = False
default_generators: tuple = ()


class CudaError(RuntimeError):
    """An error of the CUDA runtime."""


class DeferredCudaCallError(Exception):
    """An error of a call that waited for the first use of CUDA."""


def is_tf32_supported() -> bool:
    """Whether a CUDA device computes in TF32."""
    return is_available()


def get_arch_list() -> List[str]:
    """The architectures that kernels were built for: none."""
    return []


def get_gencode_flags() -> str:
    """The compiler's flags for get_arch_list()."""
    return ""


def ipc_collect() -> None:
    """Nothing to release: no memory of a device is shared."""


def get_sync_debug_mode() -> int:
    """The effect of calls in which the program waits for a device: 0 nothing, 1 a warning, 2 an
    error."""
    return _C._waits()


def set_sync_debug_mode(debug_mode: Union[int, str]) -> None:
    """Warn of calls in which the program waits for a device without having asked to, as `item()`,
    or refuse them: "default" or 0, "warn" or 1, "error" or 2. RuntimeError for others."""
    modes = ("default", "warn", "error")
    number = modes.index(debug_mode) if debug_mode in modes else debug_mode
    if isinstance(number, bool) or number not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug mode, expected one of `default`, `warn`, `error`: {debug_mode}"
        )
    _C._set_waits(number)


init = facade.refused("cuda", "init")
can_device_access_peer = facade.refused("cuda", "can_device_access_peer")
clock_rate = facade.refused("cuda", "clock_rate")
cudart = facade.refused("cuda", "cudart")
current_blas_handle = facade.refused("cuda", "current_blas_handle")
current_device = facade.refused("cuda", "current_device")
get_device_capability = facade.refused("cuda", "get_device_capability")
get_device_name = facade.refused("cuda", "get_device_name")
get_device_properties = facade.refused("cuda", "get_device_properties")
memory_usage = facade.refused("cuda", "memory_usage")
power_draw = facade.refused("cuda", "power_draw")
synchronize = facade.refused("cuda", "synchronize")
temperature = facade.refused("cuda", "temperature")
utilization = facade.refused("cuda", "utilization")


def _is_given(device: _Device) -> bool:
    """Whether it says which CUDA device; a negative number and None say none."""
    return device is not None and not (isinstance(device, int) and device < 0)


def set_device(device: _Device) -> None:
    """Make a device the current one; a negative number changes nothing. RuntimeError where there is
    no device."""
    if _is_given(device):
        raise facade.no_device("cuda.set_device")


class device:  # noqa: N801
    """`with cuda.device(1):` makes it the current device for a while; None and a negative number
    change nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if _is_given(self.idx):
            raise facade.no_device("cuda.device")

    def __exit__(self, *_: Any) -> Literal[False]:
        return False


class device_of(device):  # noqa: N801
    """`with cuda.device_of(x):` makes the device of `x` the current one, if it is not the CPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def __getattr__(name: str) -> Any:
    if name == "_initialized":  # asks for no device, as is_initialized() does
        return "cuda" in _C._backends()
    if name in legacy_types.NAMES:
        return legacy_types.tensor_type(name, "cuda")
    found = _names.otherwise(__name__, name)
    if found is None:
        raise _names.missing(__name__, name)
    return found


def __dir__() -> List[str]:
    return sorted({*globals(), *legacy_types.NAMES, "amp", "nvtx"})
