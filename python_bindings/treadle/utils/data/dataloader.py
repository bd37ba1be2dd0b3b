"""DataLoader: goes through a dataset in batches, in place or with worker processes.

The order follows from the seed alone: the same with any number of workers, as samplers run in the
main process.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import os
import sys
import warnings
from typing import Any, Callable, Iterable, Iterator, Optional, Union, cast

from treadle import _names
from treadle._C import Generator
from treadle.autograd.profiler import record_function

from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset
from .fetch import batch_count, make_fetcher
from .pinning import pinning_of
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed


class _Forever(Sampler):
    """For datasets that are only gone through: there is always a next."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader:
    """An iterable over the batches of `dataset`; each `iter()` is an epoch. Arguments are
    PyTorch's."""

    def __init__(
        self,
        dataset: Dataset,
        batch_size: Optional[int] = 1,
        shuffle: Optional[bool] = None,
        sampler: Union[Sampler, Iterable, None] = None,
        batch_sampler: Union[Sampler, Iterable, None] = None,
        num_workers: int = 0,
        collate_fn: Optional[Callable] = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Optional[Callable[[int], None]] = None,
        multiprocessing_context: Any = None,
        generator: Optional[Generator] = None,
        *,
        prefetch_factor: Optional[int] = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable "
                "multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing: num_workers > 0"
            )
        if prefetch_factor is not None and prefetch_factor <= 0:
            raise ValueError("prefetch_factor option should be positive")
        if num_workers == 0 and persistent_workers:
            raise ValueError("persistent_workers option needs num_workers > 0")
        iterable = isinstance(dataset, IterableDataset)
        self._is_pipe = iterable and _is_pipe(dataset)
        if self._is_pipe:
            from .graph_settings import apply_shuffle_settings

            dataset, shuffle = apply_shuffle_settings(dataset, shuffle), None
        _check_order(iterable, batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            if iterable:
                sampler = _Forever()
            elif shuffle:
                sampler = RandomSampler(cast(Any, dataset), generator=generator)
            else:
                sampler = SequentialSampler(cast(Any, dataset))
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        if pin_memory and not pin_memory_device and not _names.package().accelerator.is_available():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device "
                "pinned memory won't be used.",
                stacklevel=2,
            )
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self._pool: Any = None
        self._is_made = True
        self.check_worker_number_rationality()

    # The arguments that the samplers were made from.
    _FIXED = frozenset(
        ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    )

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._FIXED and getattr(self, "_is_made", False):
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """How workers are started: a context of `multiprocessing`, or None for its default. Set to
        one, or to its name; ValueError for a name that is none, and without workers; TypeError for
        another object."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            # Slow to import, and seldom used.
            from .worker_pool import checked_context

            context = checked_context(context, self.num_workers)
        self._context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _dataset_kind(self) -> int:
        iterable = isinstance(self.dataset, IterableDataset)
        return _DatasetKind.Iterable if iterable else _DatasetKind.Map

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        if self._is_pipe:
            from .graph_settings import apply_random_seed

            apply_random_seed(self.dataset, self.generator)
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        # Needs multiprocessing, which is slow to import and seldom used.
        from .worker_pool import WorkerPool, _MultiProcessingDataLoaderIter

        if not self.persistent_workers:
            return _MultiProcessingDataLoaderIter(self)
        if self._pool is None or not self._pool.alive:
            self._pool = WorkerPool(self)
        return _MultiProcessingDataLoaderIter(self, self._pool)

    @property
    def _batching(self) -> tuple:
        return self._index_sampler, self.batch_size, self.drop_last

    def __len__(self) -> int:
        return batch_count(self.dataset, *self._batching)

    def check_worker_number_rationality(self) -> None:
        """Warn where there are more workers than the process may use processors."""
        allowed = getattr(os, "sched_getaffinity", None)
        count = len(allowed(0)) if allowed is not None else os.cpu_count()
        if count is not None and self.num_workers > count:
            warnings.warn(
                f"DataLoader: expected num_workers <= {count}, the processors that this process "
                f"may use, got {self.num_workers}; more may be slower",
                stacklevel=3,
            )


class _BaseDataLoaderIter:
    """One epoch over the batches of a loader: what iter(loader) is.

    Packages that save how far an epoch has come read `_num_yielded`, the number of batches that
    were taken, and put a constructor in place of this one that moves `_sampler_iter` on.
    """

    def __init__(self, loader: DataLoader) -> None:
        self._index_sampler = loader._index_sampler
        self._sampler_iter: Iterator[Any] = iter(self._index_sampler)
        self._num_yielded = 0

    def __iter__(self) -> "_BaseDataLoaderIter":
        return self

    def __next__(self) -> Any:
        raise NotImplementedError


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """One epoch in the process that asks."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._loader = loader
        draw_seed(
            loader.generator
        )  # the draw that workers would be seeded with: orders stay the same
        self._fetcher = make_fetcher(
            loader.dataset,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
            loader._dataset_kind == _DatasetKind.Iterable,
        )

    def __len__(self) -> int:
        return len(self._loader)

    @record_function("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    def __next__(self) -> Any:
        batch = pinning_of(self._loader)(self._fetcher.fetch(next(self._sampler_iter)))
        self._num_yielded += 1
        return batch


class _DatasetKind:
    """How a dataset is gone through: by the indices of a sampler, or as it comes."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable, drop_last: bool
    ) -> Any:
        """An object whose fetch(indices) gives batches of the dataset."""
        is_iterable = kind == _DatasetKind.Iterable
        return make_fetcher(dataset, auto_collation, collate_fn, drop_last, is_iterable)


_collate_fn_t = Callable[[list], Any]
_worker_init_fn_t = Callable[[int], None]


def __getattr__(name: str) -> Any:
    if name == "get_worker_info":
        from .worker_info import get_worker_info

        return get_worker_info
    if name != "_MultiProcessingDataLoaderIter":
        raise _names.missing(__name__, name)
    from .worker_pool import _MultiProcessingDataLoaderIter

    return _MultiProcessingDataLoaderIter


def _is_pipe(dataset: Any) -> bool:
    """Whether it is an IterDataPipe, whose module is loaded then."""
    module = sys.modules.get("treadle.utils.data.datapipes.datapipe")
    return module is not None and isinstance(dataset, module.IterDataPipe)


def _check_order(
    iterable: bool, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    """The ways of saying in which order to go exclude each other."""
    if iterable:
        for name, value in (
            ("shuffle", shuffle),
            ("sampler", sampler),
            ("batch_sampler", batch_sampler),
        ):
            if value:
                raise ValueError(
                    f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                    f"{name}={value}"
                )
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                "and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )
