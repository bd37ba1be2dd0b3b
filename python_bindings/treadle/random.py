"""Seeds and states of the random number generators."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import copyreg
from typing import Any, Iterable, Iterator, List, Optional, Tuple

from treadle import _C
from treadle._C import Generator, Tensor, default_generator


def thread_safe_generator() -> None:
    """The generator of this thread where a DataLoader's worker is a thread: workers are processes,
    so that it is always None, for which functions take the one of the process."""


def manual_seed(seed: int) -> Generator:
    """Start the stream of random numbers that belongs to `seed`, on every device; returns the
    generator of the CPU."""
    _seed_other_devices(int(seed))
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start the stream of a seed taken from the system, and return that seed."""
    chosen = default_generator.seed()
    _seed_other_devices(chosen)
    return chosen


def _seed_other_devices(seed: int) -> None:
    if _C._backends():
        from treadle._device.random import seed_all_devices

        seed_all_devices(seed)


def initial_seed() -> int:
    """The seed of the current stream."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Where the stream of random numbers is, as a tensor that set_rng_state() takes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Go back to a state from get_rng_state()."""
    default_generator.set_state(new_state)


def _clone_state(self: Generator) -> Generator:
    """A new generator of the same device, at the same place of the same stream of numbers."""
    clone = Generator(device=self.device)
    clone.set_state(self.get_state())
    return clone


def _get_offset(self: Generator) -> int:
    """How far the generator has gone in the stream that belongs to its seed."""
    return int(self.get_state().view(_C.int64)[1])


def _set_offset(self: Generator, offset: int) -> None:
    """Go to a place in the stream that belongs to the seed. RuntimeError for a negative one."""
    if offset < 0:
        raise RuntimeError(f"set_offset: expected an offset of 0 or more, got {offset}")
    state = self.get_state()
    state.view(_C.int64)[1] = offset
    self.set_state(state)


def _generator_with(device: str, state: Tensor) -> Generator:
    generator = Generator(device=device)
    generator.set_state(state)
    return generator


def _reduce_generator(self: Generator) -> Tuple[Any, ...]:
    return _generator_with, (str(self.device), self.get_state())


copyreg.pickle(Generator, _reduce_generator)
Generator.clone_state = _clone_state
Generator.get_offset, Generator.set_offset = _get_offset, _set_offset


@contextlib.contextmanager
def fork_rng(
    devices: Optional[Iterable[Any]] = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: Optional[str] = None,
) -> Iterator[None]:
    """Random numbers drawn in the block leave the streams outside as they were: that of the CPU,
    and of the devices given, of every device there is if none are. `device_type` is the kind that
    numbers in `devices` mean."""
    if not enabled:
        yield
        return
    generators = [default_generator, *_generators_of(devices, device_type)]
    states = [generator.get_state() for generator in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states):
            generator.set_state(state)


def _generators_of(devices: Optional[Iterable[Any]], kind: Optional[str]) -> List[Generator]:
    if devices is None:
        if not _C._backends():
            return []
        from treadle._device.random import generators

        kinds = [name for name in _C._backends() if kind in (None, name)]
        return [generator for name in kinds for generator in generators(name)]
    named = (f"{kind}:{d}" if kind and isinstance(d, int) else d for d in devices)
    # A program may name devices of a kind that is not there.
    places = [d for d in map(_C.device, named) if d.type in _C._backends()]
    return [_C._default_generator(d) for d in places]


__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
