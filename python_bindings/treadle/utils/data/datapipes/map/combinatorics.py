"""Shuffler: the samples in a random order, to be gone through."""

from __future__ import annotations

import random
from typing import Any, Iterator, List, Optional

import treadle

from ..datapipe import IterDataPipe, MapDataPipe


class ShufflerIterDataPipe(IterDataPipe):
    """The samples in a random order, as a pipe that is gone through. indices: the keys, where they
    are not the numbers from 0 on; seeds as for the pipe of the same name in `datapipes.iter`."""

    def __init__(self, datapipe: MapDataPipe, *, indices: Optional[List] = None) -> None:
        self.datapipe: Any = datapipe
        self.indices = list(range(len(self.datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: Optional[int] = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> "ShufflerIterDataPipe":
        """Whether the order is changed."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> "ShufflerIterDataPipe":
        """Where the next pass's order comes from."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        keys = list(self.indices)
        if self._enabled:
            if self._seed is None:
                self._seed = int(treadle.empty((), dtype=treadle.int64).random_().item())
            self._rng.seed(self._seed)
            self._seed = None
            keys = self._rng.sample(keys, len(keys))[::-1]
        for key in keys:
            yield self.datapipe[key]

    def __len__(self) -> int:
        return len(self.datapipe)


# It is a method of pipes of the other kind than its own.
MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)

__all__ = ["ShufflerIterDataPipe"]
