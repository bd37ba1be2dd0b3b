"""Pipes that change the order of samples: Shuffler, Sampler."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple, Type

from treadle.utils.data import sampler as samplers

from .._shuffling import Shuffling
from ..datapipe import IterDataPipe, functional_datapipe


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Shuffling, IterDataPipe):
    """The samples in a random order, each drawn from buffer_size that wait.

    unbatch_level: batches are first taken apart so far. The order of each pass is that of
    set_seed(), or drawn from the library's random numbers; set_shuffle(False) keeps the order, as
    a DataLoader with shuffle=False does. Raises ValueError for buffer_size below 1.
    """

    def __init__(
        self, datapipe: IterDataPipe, *, buffer_size: int = 10000, unbatch_level: int = 0
    ) -> None:
        if buffer_size <= 0:
            raise ValueError(f"shuffle: expected buffer_size > 0, got {buffer_size}")
        super().__init__(datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level))
        self.unbatch_level, self.buffer_size = unbatch_level, buffer_size

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        waiting: List[Any] = []
        for sample in self.datapipe:
            if len(waiting) < self.buffer_size:
                waiting.append(sample)
                continue
            place = self._rng.randint(0, len(waiting) - 1)
            sample, waiting[place] = waiting[place], sample
            yield sample
        while waiting:
            yield waiting.pop(self._rng.randint(0, len(waiting) - 1))


class SamplerIterDataPipe(IterDataPipe):
    """The elements of a sampler over the pipe, which must have a length."""

    def __init__(
        self,
        datapipe: IterDataPipe,
        sampler: Type[samplers.Sampler] = samplers.SequentialSampler,
        sampler_args: Optional[Tuple] = None,
        sampler_kwargs: Optional[Dict] = None,
    ) -> None:
        if not hasattr(type(datapipe), "__len__"):
            raise TypeError(f"Sampler: expected a pipe with a length, got {datapipe!r}")
        self.datapipe = datapipe
        self.sampler_args = sampler_args or ()
        self.sampler_kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)  # type: ignore[arg-type]


__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]
