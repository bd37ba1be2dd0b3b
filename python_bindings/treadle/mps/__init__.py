"""Questions about Apple's graphics processors: there is none here."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import _names
from treadle._device import facade

__getattr__ = _names.attributes_of(__name__)

is_available = facade.questions("mps").is_available
_seeds = facade.seeds("mps", "its generator")
manual_seed, seed = _seeds.manual_seed, _seeds.seed


def device_count() -> int:
    """How many there are."""
    return int(is_available())


current_allocated_memory = facade.refused("mps", "current_allocated_memory")
driver_allocated_memory = facade.refused("mps", "driver_allocated_memory")
empty_cache = facade.refused("mps", "empty_cache")
get_rng_state = facade.refused("mps", "get_rng_state")
recommended_max_memory = facade.refused("mps", "recommended_max_memory")
set_per_process_memory_fraction = facade.refused("mps", "set_per_process_memory_fraction")
set_rng_state = facade.refused("mps", "set_rng_state")
synchronize = facade.refused("mps", "synchronize")
Event = facade.refused("mps", "Event")
