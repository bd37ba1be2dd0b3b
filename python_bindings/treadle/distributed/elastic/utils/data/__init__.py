"""Data of runs that start anew: samplers that begin in the middle, iterators over epochs."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional, TypeVar

from treadle import _C
from treadle.utils.data.distributed import DistributedSampler

T = TypeVar("T")


class ElasticDistributedSampler(DistributedSampler):
    """A DistributedSampler of the examples from `start_index` on: those that were not seen in this
    epoch before the run started anew. ValueError for a start outside of the dataset."""

    def __init__(
        self,
        dataset: Any,
        num_replicas: Optional[int] = None,
        rank: Optional[int] = None,
        start_index: int = 0,
    ) -> None:
        super().__init__(dataset, num_replicas, rank)
        if not 0 <= start_index < len(dataset):
            raise ValueError(
                f"ElasticDistributedSampler: expected start_index in [0, {len(dataset)}), got "
                f"{start_index}"
            )
        self.start_index = start_index
        self.num_samples = -(-(len(dataset) - start_index) // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        generator = _C.Generator().manual_seed(self.epoch)
        count = len(self.dataset) - self.start_index
        order = _C.randperm(count, generator=generator).tolist()
        places = range(self.rank, self.total_size, self.num_replicas)
        # From the beginning again where shares are not equal.
        return (self.start_index + order[place % count] for place in places)


class CyclingIterator(Iterator[T]):
    """The items of `generator_fn(epoch)` for the epochs from `start_epoch` to n - 1, one epoch
    after the other."""

    def __init__(
        self, n: int, generator_fn: Callable[[int], Iterator[T]], start_epoch: int = 0
    ) -> None:
        self._n = n
        self._epoch = start_epoch
        self._make = generator_fn
        self._now = generator_fn(start_epoch)

    def __next__(self) -> T:
        while True:
            try:
                return next(self._now)
            except StopIteration:
                if self._epoch >= self._n - 1:
                    raise
            self._epoch += 1
            self._now = self._make(self._epoch)


__all__ = ["CyclingIterator", "ElasticDistributedSampler"]
