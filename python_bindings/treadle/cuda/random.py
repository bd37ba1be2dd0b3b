"""The random numbers of CUDA devices. Seeding does nothing where there is none, as programs seed
all they know; the state of a generator needs a device.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, List

from treadle._C import Tensor
from treadle._device import absent

_refused = absent.refusals("cuda")


def manual_seed(seed: int) -> None:
    """Seed the generator of the current device, if there is one."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices."""
    int(seed)


def seed() -> None:
    """Seed the generator of the current device from the system, if there is one."""


def seed_all() -> None:
    """Seed the generators of all devices from the system."""


def get_rng_state_all() -> List[Tensor]:
    """The state of the generator of each device."""
    return []


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the state of the generator of each device. RuntimeError for a state without a device."""
    if list(new_states):
        raise absent.no_device("cuda.set_rng_state_all")


get_rng_state = _refused("get_rng_state")
initial_seed = _refused("initial_seed")
set_rng_state = _refused("set_rng_state")

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]
