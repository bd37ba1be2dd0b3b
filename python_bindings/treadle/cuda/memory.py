"""The memory of CUDA devices: none is in use, as there is no device; see treadle.cuda."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List

from treadle._device import facade

memory_allocated, memory_stats, empty_cache, reset_peak_memory_stats = facade.memory("cuda.memory")

max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated
memory_cached = max_memory_cached = memory_allocated  # older names


def memory_snapshot(mempool_id: Any = None) -> List[Any]:
    """The blocks of the allocator of a device: there is none."""
    return []


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
reset_accumulated_memory_stats = reset_peak_memory_stats


def get_allocator_backend() -> str:
    """The name of the allocator that a device would have."""
    return "native"


list_gpu_processes = facade.refused("cuda", "list_gpu_processes")
mem_get_info = facade.refused("cuda", "mem_get_info")
memory_summary = facade.refused("cuda", "memory_summary")
set_per_process_memory_fraction = facade.refused("cuda", "set_per_process_memory_fraction")

__all__ = [
    "empty_cache",
    "get_allocator_backend",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]
