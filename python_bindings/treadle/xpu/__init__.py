"""Questions about Intel's graphics processors: there is none here."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _names
from treadle._device import absent
from treadle.cuda.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
)
from treadle.cuda.random import manual_seed, manual_seed_all, seed, seed_all

_refused = absent.refusals("xpu")
__getattr__ = _names.attributes_of(__name__)


def is_available() -> bool:
    """Whether tensors can be made on one."""
    return absent.is_available("xpu")


def device_count() -> int:
    """How many there are."""
    return absent.count("xpu")


def is_initialized() -> bool:
    """Whether one has been used: never where there is none."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether one computes in bfloat16."""
    return is_available()


class Stream:
    """A queue of work on a device. RuntimeError where there is no device."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Stream:
        raise absent.no_device("xpu.Stream")


Event = _refused("Event")
current_device = _refused("current_device")
current_stream = _refused("current_stream")
get_device_capability = _refused("get_device_capability")
get_device_name = _refused("get_device_name")
get_device_properties = _refused("get_device_properties")
get_rng_state = _refused("get_rng_state")
init = _refused("init")
initial_seed = _refused("initial_seed")
mem_get_info = _refused("mem_get_info")
set_device = _refused("set_device")
set_rng_state = _refused("set_rng_state")
synchronize = _refused("synchronize")

__all__ = [
    "Event",
    "Stream",
    "current_device",
    "current_stream",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "synchronize",
]
