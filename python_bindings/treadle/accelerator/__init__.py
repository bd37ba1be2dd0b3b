"""The device beside the CPU: that of the only backend, where there is one. A program with several
names the one it means.

    device = treadle.accelerator.current_accelerator() or treadle.device("cpu")
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Dict, Optional

from treadle import _C, _names
from treadle._device import absent


def current_accelerator(check_available: bool = False) -> Optional[_C.device]:
    """The device, without its number; None where there is none, or several kinds."""
    name = absent.only_backend() or ("cuda" if absent.is_available("cuda") else None)
    return None if name is None else _C.device(name)


def is_available() -> bool:
    """Whether there is one."""
    return device_count() > 0


def device_count() -> int:
    """How many of its kind there are."""
    found = current_accelerator()
    return 0 if found is None else absent.get_device_module(found).device_count()


def _module(function: str) -> Any:
    """The module of the device; RuntimeError where there is none."""
    found = current_accelerator()
    if found is None:
        raise absent.no_device(f"accelerator.{function}")
    return absent.get_device_module(found)


def current_device_index() -> int:
    """The number of this thread's current device."""
    return _module("current_device_index").current_device()


def set_device_index(device: Any) -> None:
    """Make a device the current one of this thread; a negative number changes nothing."""
    _module("set_device_index").set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index  # older names


def current_stream(device: Any = None) -> Any:
    """The stream that this thread's work on a device goes to."""
    return _module("current_stream").current_stream(device)


def set_stream(stream: Any) -> None:
    """Let this thread's work on the stream's device go to it."""
    _module("set_stream").set_stream(stream)


def synchronize(device: Any = None) -> None:
    """Wait for all work of a device."""
    _module("synchronize").synchronize(device)


class device_index:  # noqa: N801
    """`with accelerator.device_index(1):` makes it the current device; None changes nothing."""

    def __init__(self, device: Optional[int]) -> None:
        self.idx = device
        self._context: Any = None

    def __enter__(self) -> None:
        if self.idx is not None:
            self._context = _module("device_index").device(self.idx)
            self._context.__enter__()

    def __exit__(self, *exception: Any) -> None:
        if self._context is not None:
            self._context.__exit__(*exception)


# ---- memory: nothing is taken where there is no device ----


def _memory(function: str, device: Any, otherwise: Any) -> Any:
    if current_accelerator() is None:
        return otherwise
    return getattr(_module(function), function)(device)


def empty_cache() -> None:
    """Give memory that is kept for later tensors back to the device."""
    if current_accelerator() is not None:
        _module("empty_cache").empty_cache()


def memory_allocated(device_index: Any = None) -> int:
    """Bytes that tensors take on a device."""
    return _memory("memory_allocated", device_index, 0)


def max_memory_allocated(device_index: Any = None) -> int:
    """The most bytes that tensors took at one time."""
    return _memory("max_memory_allocated", device_index, 0)


def memory_reserved(device_index: Any = None) -> int:
    """Bytes that tensors take, and those kept for later ones."""
    return _memory("memory_reserved", device_index, 0)


def max_memory_reserved(device_index: Any = None) -> int:
    """The most bytes that were taken and kept at one time."""
    return _memory("max_memory_reserved", device_index, 0)


def memory_stats(device_index: Any = None) -> Dict[str, Any]:
    """Numbers about the memory of a device; see treadle.NAME.memory_stats."""
    return OrderedDict(_memory("memory_stats", device_index, {}))


def get_memory_info(device_index: Any = None) -> Any:
    """Bytes of a device that are free, and all it has; 0 where the backend does not know."""
    return _module("get_memory_info").mem_get_info(device_index)


def reset_peak_memory_stats(device_index: Any = None) -> None:
    """Let every peak start again from what is taken now."""
    _memory("reset_peak_memory_stats", device_index, None)


def reset_accumulated_memory_stats(device_index: Any = None) -> None:
    """Let the sums of what was allocated and freed start again from 0."""
    _memory("reset_accumulated_memory_stats", device_index, None)


def empty_host_cache() -> None:
    """Does nothing: memory of the host is not kept for later tensors of a device."""


def get_device_capability(device: Any = None) -> Any:
    """What the device can do: {"supported_dtypes": ...}; RuntimeError where there is none."""
    return _module("get_device_capability").get_device_capability(device)


__getattr__ = _names.attributes_of(__name__, {"Graph": "graphs"})
