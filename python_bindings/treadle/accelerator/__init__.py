"""The device beside the CPU: that of the only backend, where there is one. A program with several
names the one it means.

    device = treadle.accelerator.current_accelerator() or treadle.device("cpu")
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Dict, Optional

from treadle import _names
from treadle._device import facade, registry
from treadle._device.registry import current_accelerator


def is_available() -> bool:
    """Whether there is one."""
    return device_count() > 0


def device_count() -> int:
    """How many of its kind there are."""
    found = current_accelerator()
    return 0 if found is None else registry.get_device_module(found).device_count()


def current_device_index() -> int:
    """The number of this thread's current device."""
    return facade.accelerator("current_device_index").current_device()


def set_device_index(device: Any) -> None:
    """Make a device the current one of this thread; a negative number changes nothing."""
    facade.accelerator("set_device_index").set_device(device)


current_device_idx, set_device_idx = current_device_index, set_device_index  # older names


def current_stream(device: Any = None) -> Any:
    """The stream that this thread's work on a device goes to."""
    return facade.accelerator("current_stream").current_stream(device)


def set_stream(stream: Any) -> None:
    """Let this thread's work on the stream's device go to it."""
    facade.accelerator("set_stream").set_stream(stream)


def synchronize(device: Any = None) -> None:
    """Wait for all work of a device."""
    facade.accelerator("synchronize").synchronize(device)


class device_index:  # noqa: N801
    """`with accelerator.device_index(1):` makes it the current device; None changes nothing."""

    def __init__(self, device: Optional[int]) -> None:
        self.idx = device
        self._context: Any = None

    def __enter__(self) -> None:
        if self.idx is not None:
            self._context = facade.accelerator("device_index").device(self.idx)
            self._context.__enter__()

    def __exit__(self, *exception: Any) -> None:
        if self._context is not None:
            self._context.__exit__(*exception)


# ---- memory: nothing is taken where there is no device ----


def empty_cache() -> None:
    """Give memory that is kept for later tensors back to the device."""
    if current_accelerator() is not None:
        facade.accelerator("empty_cache").empty_cache()


memory_allocated = facade.bytes_of_memory(
    "memory_allocated", "Bytes that tensors take on a device."
)
max_memory_allocated = facade.bytes_of_memory(
    "max_memory_allocated", "The most bytes that tensors took at one time."
)
memory_reserved = facade.bytes_of_memory(
    "memory_reserved", "Bytes that tensors take, and those kept for later ones."
)
max_memory_reserved = facade.bytes_of_memory(
    "max_memory_reserved", "The most bytes that were taken and kept at one time."
)


def memory_stats(device_index: Any = None) -> Dict[str, Any]:
    """Numbers about the memory of a device; see treadle.NAME.memory_stats."""
    if current_accelerator() is None:
        return OrderedDict()
    return OrderedDict(facade.accelerator("memory_stats").memory_stats(device_index))


def get_memory_info(device_index: Any = None) -> Any:
    """Bytes of a device that are free, and all it has; 0 where the backend does not know."""
    return facade.accelerator("get_memory_info").mem_get_info(device_index)


reset_peak_memory_stats = facade.reset_of_memory(
    "reset_peak_memory_stats", "Let every peak start again from what is taken now."
)
reset_accumulated_memory_stats = facade.reset_of_memory(
    "reset_accumulated_memory_stats",
    "Let the sums of what was allocated and freed start again from 0.",
)


def empty_host_cache() -> None:
    """Does nothing: memory of the host is not kept for later tensors of a device."""


def get_device_capability(device: Any = None) -> Any:
    """The abilities of the device: {"supported_dtypes": ...}; RuntimeError where there is none."""
    return facade.accelerator("get_device_capability").get_device_capability(device)


__getattr__ = _names.attributes_of(__name__, {"Graph": "graphs"})
