"""Seeds and states of the random number generators."""

from __future__ import annotations

import contextlib
from typing import Any, Iterable, Iterator, Optional

from treadle._C import Generator, Tensor, default_generator


def manual_seed(seed: int) -> Generator:
    """Start the stream of random numbers that belongs to `seed`; returns the generator."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start the stream of a seed taken from the system, and return that seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the current stream."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Where the stream of random numbers is, as a tensor that set_rng_state() takes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Go back to a state from get_rng_state()."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices: Optional[Iterable[Any]] = None, enabled: bool = True, **_: Any
) -> Iterator[None]:
    """Random numbers drawn in the block leave the stream outside as it was."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
