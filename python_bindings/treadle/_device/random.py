"""The random numbers of devices from outside: each device has a generator of its own."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import random
from typing import Any, Iterable, List, Tuple

from treadle import _C
from treadle._device.index import index_of


def generators(name: str) -> Tuple[_C.Generator, ...]:
    """The generator of each device of a kind."""
    count = _C._backend_device_count(name)
    return tuple(_C._default_generator(_C.device(name, index)) for index in range(count))


def seed_all_devices(seed: int) -> None:
    """Start the stream of `seed` on every device from outside."""
    for name in _C._backends():
        for generator in generators(name):
            generator.manual_seed(seed)


class RandomFunctions:
    """The functions of `treadle.NAME` that are about random numbers."""

    _name: str

    def _generator(self, device: Any = None) -> _C.Generator:
        index = index_of(self._name, device)
        return _C._default_generator(_C.device(self._name, index) if index >= 0 else self._name)

    @property
    def default_generators(self) -> Tuple[_C.Generator, ...]:
        """The generator of each device."""
        return generators(self._name)

    def manual_seed(self, seed: int) -> None:
        """Start the stream of a seed on the current device."""
        self._generator().manual_seed(int(seed))

    def manual_seed_all(self, seed: int) -> None:
        """Start the stream of a seed on every device."""
        for generator in generators(self._name):
            generator.manual_seed(int(seed))

    def seed(self) -> None:
        """Start the stream of a seed from the system on the current device."""
        self._generator().seed()

    def seed_all(self) -> None:
        """Start the stream of one seed from the system on every device."""
        self.manual_seed_all(random.SystemRandom().getrandbits(64))

    def initial_seed(self) -> int:
        """The seed of the current device's stream."""
        return self._generator().initial_seed()

    def get_rng_state(self, device: Any = None) -> _C.Tensor:
        """Where the stream of a device is, as a tensor of the CPU that set_rng_state() takes."""
        return self._generator(device).get_state()

    def set_rng_state(self, new_state: _C.Tensor, device: Any = None) -> None:
        """Go back to a state from get_rng_state()."""
        self._generator(device).set_state(new_state)

    def get_rng_state_all(self) -> List[_C.Tensor]:
        """The state of each device."""
        return [generator.get_state() for generator in generators(self._name)]

    def set_rng_state_all(self, new_states: Iterable[_C.Tensor]) -> None:
        """Set the state of each device."""
        for generator, state in zip(generators(self._name), new_states):
            generator.set_state(state)
