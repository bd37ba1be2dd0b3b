"""The random numbers of CUDA devices. Seeding does nothing where there is none, as programs seed
all they know; the state of a generator needs a device.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, List

from treadle._C import Tensor
from treadle._device import facade

manual_seed, manual_seed_all, seed, seed_all = facade.seeds("cuda.random")


def get_rng_state_all() -> List[Tensor]:
    """The state of the generator of each device."""
    return []


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the state of the generator of each device. RuntimeError for a state without a device."""
    if list(new_states):
        raise facade.no_device("cuda.set_rng_state_all")


get_rng_state = facade.refused("cuda", "get_rng_state")
initial_seed = facade.refused("cuda", "initial_seed")
set_rng_state = facade.refused("cuda", "set_rng_state")

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
