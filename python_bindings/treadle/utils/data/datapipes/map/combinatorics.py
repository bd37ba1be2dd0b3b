"""Shuffler: the samples in a random order, to be gone through."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator, List, Optional

from .._shuffling import Shuffling
from ..datapipe import IterDataPipe, MapDataPipe


class ShufflerIterDataPipe(Shuffling, IterDataPipe):
    """The samples in a random order, as a pipe that is gone through. indices: the keys, where they
    are not the numbers from 0 on; seeds as for the pipe of the same name in `datapipes.iter`."""

    def __init__(self, datapipe: MapDataPipe, *, indices: Optional[List] = None) -> None:
        super().__init__(datapipe)
        self.indices = list(range(len(self.datapipe))) if indices is None else indices

    def __iter__(self) -> Iterator[Any]:
        keys = list(self.indices)
        if self._enabled:
            keys = self._rng.sample(keys, len(keys))[::-1]
        for key in keys:
            yield self.datapipe[key]


# It is a method of pipes of the other kind than its own.
MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)

__all__ = ["ShufflerIterDataPipe"]
