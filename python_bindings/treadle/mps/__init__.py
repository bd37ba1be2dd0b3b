"""Questions about Apple's graphics processors: there is none here."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import _names
from treadle._device import absent

_refused = absent.refusals("mps")
__getattr__ = _names.attributes_of(__name__)


def is_available() -> bool:
    """Whether tensors can be made on one."""
    return absent.is_available("mps")


def device_count() -> int:
    """How many there are."""
    return int(is_available())


def manual_seed(seed: int) -> None:
    """Seed its generator, if there is one."""
    int(seed)


def seed() -> None:
    """Seed its generator from the system, if there is one."""


current_allocated_memory = _refused("current_allocated_memory")
driver_allocated_memory = _refused("driver_allocated_memory")
empty_cache = _refused("empty_cache")
get_rng_state = _refused("get_rng_state")
recommended_max_memory = _refused("recommended_max_memory")
set_per_process_memory_fraction = _refused("set_per_process_memory_fraction")
set_rng_state = _refused("set_rng_state")
synchronize = _refused("synchronize")
Event = _refused("Event")
