"""The device beside the CPU, whichever it is; there is none until a backend is loaded.

device = treadle.accelerator.current_accelerator() or treadle.device("cpu")
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Dict, Optional

from treadle import _C, _devices

_refused = _devices.refusals("accelerator")
_KINDS = ("cuda", "xpu", "mps")


def current_accelerator(check_available: bool = False) -> Optional[_C.device]:
    """The device, without its number; None where there is none."""
    for kind in _KINDS:
        if _devices.is_available(kind):
            return _C.device(kind)
    return None


def is_available() -> bool:
    """Whether there is one."""
    return current_accelerator() is not None


def device_count() -> int:
    """How many of its kind there are."""
    found = current_accelerator()
    return 0 if found is None else _devices.count(found.type)


current_device_index = _refused("current_device_index")
current_device_idx = _refused("current_device_idx")
current_stream = _refused("current_stream")
set_device_index = _refused("set_device_index")
set_device_idx = _refused("set_device_idx")
set_stream = _refused("set_stream")
synchronize = _refused("synchronize")


class device_index:  # noqa: N801
    """`with accelerator.device_index(1):` makes it the current device; None changes nothing."""

    def __init__(self, device: Optional[int]) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            raise _devices.no_device("accelerator.device_index")

    def __exit__(self, *_: Any) -> None:
        pass


def empty_cache() -> None:
    """Nothing is kept for later on a device."""


def memory_allocated(device_index: Any = None) -> int:
    """Bytes that tensors take on a device."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def memory_stats(device_index: Any = None) -> Dict[str, Any]:
    """Numbers about the allocator of a device: there is none."""
    return OrderedDict()


def reset_peak_memory_stats(device_index: Any = None) -> None:
    """Nothing was counted."""


reset_accumulated_memory_stats = reset_peak_memory_stats
