"""Questions about Intel's graphics processors: there is none here."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _names
from treadle._device import facade

__getattr__ = _names.attributes_of(__name__)

is_available, device_count, is_initialized, is_bf16_supported = facade.questions("xpu")
manual_seed, manual_seed_all, seed, seed_all = facade.seeds("xpu")
memory_allocated, _, empty_cache, reset_peak_memory_stats = facade.memory("xpu")
max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated

Stream: Any = facade.stream_type("xpu", "xpu")
Event = facade.refused("xpu", "Event")
current_device = facade.refused("xpu", "current_device")
current_stream = facade.refused("xpu", "current_stream")
get_device_capability = facade.refused("xpu", "get_device_capability")
get_device_name = facade.refused("xpu", "get_device_name")
get_device_properties = facade.refused("xpu", "get_device_properties")
get_rng_state = facade.refused("xpu", "get_rng_state")
init = facade.refused("xpu", "init")
initial_seed = facade.refused("xpu", "initial_seed")
mem_get_info = facade.refused("xpu", "mem_get_info")
set_device = facade.refused("xpu", "set_device")
set_rng_state = facade.refused("xpu", "set_rng_state")
synchronize = facade.refused("xpu", "synchronize")

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
