"""From indices to a batch: the one piece of work that is done either in place or in a worker
process."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional, cast

from .dataset import IterableDataset


class MapFetcher:
    """Looks samples up; `batched` says whether it is asked for several at once."""

    def __init__(self, dataset: Any, batched: bool, collate: Callable) -> None:
        self.dataset = dataset
        self.batched = batched
        self.collate = collate

    def fetch(self, indices: Any) -> Any:
        """The batch of these indices."""
        if not self.batched:
            return self.collate(self.dataset[indices])
        many = getattr(self.dataset, "__getitems__", None)
        samples = many(indices) if many else [self.dataset[index] for index in indices]
        return self.collate(samples)


class IterableFetcher:
    """Goes through a dataset; StopIteration when it is through."""

    def __init__(self, dataset: Any, batched: bool, collate: Callable, drop_last: bool) -> None:
        self.iterator: Iterator = iter(dataset)
        self.batched = batched
        self.collate = collate
        self.drop_last = drop_last

    def fetch(self, indices: Any) -> Any:
        """The next batch; of `indices` only their number counts."""
        if not self.batched:
            return self.collate(next(self.iterator))
        samples = []
        for _ in indices:
            try:
                samples.append(next(self.iterator))
            except StopIteration:
                break
        if not samples or (self.drop_last and len(samples) < len(indices)):
            raise StopIteration
        return self.collate(samples)


def make_fetcher(
    dataset: Any,
    batched: bool,
    collate: Any,
    drop_last: bool,
    iterable: Optional[bool] = None,
) -> Any:
    """The fetcher that fits the dataset, or what `iterable` says of it."""
    if isinstance(dataset, IterableDataset) if iterable is None else iterable:
        return IterableFetcher(dataset, batched, collate, drop_last)
    return MapFetcher(dataset, batched, collate)


def batch_count(
    dataset: Any, index_sampler: Any, batch_size: Optional[int], drop_last: bool
) -> int:
    """How many batches an epoch has; TypeError if the dataset does not know its length."""
    if not isinstance(dataset, IterableDataset):
        return len(index_sampler)
    length = len(cast(Any, dataset))
    if batch_size is None:
        return length
    full, rest = divmod(length, batch_size)
    return full if drop_last or not rest else full + 1
