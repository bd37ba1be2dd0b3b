"""Pipes that gather samples and take them apart: Batcher, UnBatcher, Grouper."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import defaultdict
from typing import Any, Callable, DefaultDict, Iterator, List, Optional

from .._batching import Batching
from ..datapipe import DataChunk, IterDataPipe, functional_datapipe


@functional_datapipe("batch")
class BatcherIterDataPipe(Batching, IterDataPipe):
    __doc__ = Batching.__doc__

    def __iter__(self) -> Iterator[Any]:
        batch: List[Any] = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The samples of batches; unbatch_level is how many levels of lists go, -1 for all. Raises
    ValueError below -1, IndexError where there are not so many levels."""

    def __init__(self, datapipe: IterDataPipe, unbatch_level: int = 1) -> None:
        if unbatch_level < -1:
            raise ValueError(f"unbatch: expected unbatch_level >= -1, got {unbatch_level}")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._samples(element, self.unbatch_level)

    def _samples(self, element: Any, level: int) -> Iterator[Any]:
        is_list = isinstance(element, (list, DataChunk))
        if level == 0 or (level == -1 and not is_list):
            yield element
        elif not is_list:
            raise IndexError(
                f"unbatch: expected lists down to unbatch_level {self.unbatch_level}, got "
                f"{type(element).__name__}"
            )
        else:
            for item in element:
                yield from self._samples(item, level if level == -1 else level - 1)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Lists of samples for which group_key_fn gives the same key.

    A list is passed on when it has group_size samples, and at the end. When buffer_size samples
    wait, the longest list is passed on, or dropped below guaranteed_group_size where drop_remaining
    says so. With keep_key a pair of the key and the list. Raises ValueError for sizes that do not
    fit, RuntimeError where a list that must not be is shorter than guaranteed.
    """

    def __init__(
        self,
        datapipe: IterDataPipe,
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: Optional[int] = None,
        guaranteed_group_size: Optional[int] = None,
        drop_remaining: bool = False,
    ) -> None:
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise ValueError(f"groupby: expected 0 < group_size <= {buffer_size}, got {group_size}")
        least = group_size if guaranteed_group_size is None else guaranteed_group_size
        if guaranteed_group_size is not None and not (
            group_size is not None and 0 < guaranteed_group_size <= group_size
        ):
            raise ValueError(
                f"groupby: expected 0 < guaranteed_group_size <= group_size, got "
                f"{guaranteed_group_size} and {group_size}"
            )
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.max_buffer_size, self.group_size = buffer_size, group_size
        self.guaranteed_group_size, self.drop_remaining = least, drop_remaining
        self.wrapper_class = DataChunk

    def _group(self, key: Any, samples: List[Any]) -> Any:
        group = self.wrapper_class(samples)
        return (key, group) if self.keep_key else group

    def __iter__(self) -> Iterator[Any]:
        waiting: DefaultDict[Any, List[Any]] = defaultdict(list)
        count = 0
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            waiting[key].append(sample)
            count += 1
            if self.group_size is not None and len(waiting[key]) == self.group_size:
                count -= self.group_size
                yield self._group(key, waiting.pop(key))
            elif count == self.max_buffer_size:
                longest = max(waiting, key=lambda k: len(waiting[k]))
                samples = waiting.pop(longest)
                count -= len(samples)
                if self.guaranteed_group_size is None or len(samples) >= self.guaranteed_group_size:
                    yield self._group(longest, samples)
                elif not self.drop_remaining:
                    raise RuntimeError(
                        f"groupby: expected {self.guaranteed_group_size} samples of the key "
                        f"{longest!r} among {self.max_buffer_size}, got {len(samples)}"
                    )
        for key, samples in waiting.items():
            if not (self.drop_remaining and len(samples) < (self.guaranteed_group_size or 0)):
                yield self._group(key, samples)


__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]
