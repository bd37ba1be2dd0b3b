"""The worker processes of one DataLoader, seen from the main process, and the iterator over their
batches.

Every worker has a pipe of its own, so that one that dies leaves no lock held. The main process
waits on all pipes and on the ends of all processes at once: a death is noticed when it happens.
Batches come in any order and are handed out in the order of their numbers.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import itertools
import multiprocessing
import multiprocessing.context
import os
import weakref
from collections import deque
from multiprocessing.connection import wait
from typing import Any, Optional

from treadle.autograd.profiler import record_function

from . import transport, worker
from .dataloader import _BaseDataLoaderIter
from .fetch import batch_count
from .pinning import pinning_of
from .sampler import draw_seed

_GOODBYE = 2.0  # seconds that a worker gets to end by itself


class WorkerPool:
    """Starts the processes; ends them when it is closed, collected, or the program ends."""

    def __init__(self, loader: Any) -> None:
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self.count = loader.num_workers
        self.connections: list = []
        self.processes: list = []
        self.epoch = 0
        self._numbers = itertools.count()
        self._under_way: set[int] = set()
        self._arrived: dict[int, tuple[str, Any]] = {}  # answers that came before their turn
        # Kept apart from self, so that ending the workers does not need the pool itself.
        self._finalizer = weakref.finalize(
            self, _end, self.connections, self.processes, os.getpid()
        )
        forks = context.get_start_method() == "fork"
        try:
            for number in range(self.count):
                mine, theirs = context.Pipe(duplex=True)
                self.connections.append(mine)
                job = worker.WorkerJob(
                    number,
                    self.count,
                    loader.dataset,
                    loader._auto_collation,
                    loader.collate_fn,
                    loader.drop_last,
                    loader.worker_init_fn,
                    os.getpid(),
                )
                inherited = list(self.connections) if forks else []
                process = context.Process(
                    target=worker.run, args=(job, theirs, inherited), daemon=True
                )
                try:
                    process.start()
                finally:
                    theirs.close()
                self.processes.append(process)
        except BaseException:
            self.close()
            raise

    def start_epoch(self, seed: int, timeout: float) -> int:
        """Take in what is still under way, and have all workers start from the beginning."""
        for number in list(self._under_way):
            self.result(number, timeout)
        for number in range(self.count):
            self._tell(number, ("epoch", -1, seed))
        self.epoch += 1
        return self.epoch

    def order(self, who: int, indices: Any) -> int:
        """Have a worker make the batch of these indices; returns the number it will come under."""
        number = next(self._numbers)
        self._under_way.add(number)
        self._tell(who, ("batch", number, indices))
        return number

    def result(self, number: int, timeout: float) -> tuple[str, Any]:
        """Wait for a batch: ("batch", it), ("error", an ExceptionWrapper) or ("end", None)."""
        while number not in self._arrived:
            self._take_in(timeout)
        self._under_way.discard(number)
        return self._arrived.pop(number)

    def first(self, numbers: Any, timeout: float) -> int:
        """Wait for one of these batches to arrive; the one that has come first."""
        while True:
            for number in self._arrived:
                if number in numbers:
                    return number
            self._take_in(timeout)

    def _take_in(self, timeout: float) -> None:
        for kind, arrived, value in self._receive(timeout):
            self._arrived[arrived] = (kind, value)

    @property
    def alive(self) -> bool:
        """Whether the workers are there to be used."""
        return self._finalizer.alive and all(process.is_alive() for process in self.processes)

    def close(self) -> None:
        """End all workers; doing it twice does no harm."""
        self._finalizer()

    def _tell(self, number: int, order: Any) -> None:
        """Send an order to a worker."""
        try:
            self.connections[number].send(order)
        except (BrokenPipeError, ConnectionResetError):
            self._report_death(number)

    def _receive(self, timeout: float) -> list[tuple]:
        """Wait for answers of any workers; RuntimeError if one has died."""
        owners: dict[Any, int] = {}
        for number, (connection, process) in enumerate(zip(self.connections, self.processes)):
            owners[connection] = number
            owners[process.sentinel] = number
        ready = wait(list(owners), timeout or None)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        answers, dead = [], []
        for thing in ready:
            if isinstance(thing, int):
                dead.append(owners[thing])
                continue
            try:
                answers.append(transport.receive(thing))  # type: ignore[arg-type]
            except (EOFError, OSError):
                dead.append(owners[thing])
        # Answers that a worker sent before it died still count.
        if dead and not answers:
            self._report_death(dead[0])
        return answers

    def _report_death(self, number: int) -> None:
        process = self.processes[number]
        process.join(_GOODBYE)
        code = process.exitcode
        self.close()
        how = (
            f"was killed by signal {-code}"
            if code is not None and code < 0
            else f"exited with code {code}"
        )
        raise RuntimeError(
            f"DataLoader worker (pid {process.pid}) {how} while a batch was expected of it.\n"
            "A worker that is killed often used more memory than there was; num_workers=0 shows "
            "errors in place."
        )


def checked_context(given: Any, num_workers: int) -> Any:
    """The context that a DataLoader was given, by itself or by its name."""
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > "
            f"0), but got num_workers={num_workers}"
        )
    if isinstance(given, str):
        known = multiprocessing.get_all_start_methods()
        if given not in known:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{known!r}, but got multiprocessing_context={given!r}"
            )
        return multiprocessing.get_context(given)
    if not isinstance(given, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={given}"
        )
    return given


def _end(connections: list, processes: list, owner: int) -> None:
    if os.getpid() != owner:
        return  # a forked copy of the pool: the workers are not its own
    for connection in connections:
        try:
            connection.send(None)
        except (OSError, ValueError):
            pass
        connection.close()  # a worker that is busy notices this
    for process in processes:
        process.join(_GOODBYE)
        if process.is_alive():
            process.kill()
            process.join()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """One epoch over the batches that workers make.

    At most prefetch_factor batches per worker are under way; of a large number so many come to be
    while batches are taken. A pool of its own ends with the epoch; one that is given stays.
    """

    def __init__(self, loader: Any, pool: Optional[WorkerPool] = None) -> None:
        # The loader itself is not kept: it may keep the pool, and neither should keep the other
        # alive.
        super().__init__(loader)
        self._keep = pool is not None
        self._pool = pool = WorkerPool(loader) if pool is None else pool
        self._timeout = loader.timeout
        self._in_order = loader.in_order
        self._pinned = pinning_of(loader)
        self._length = functools.partial(batch_count, loader.dataset, *loader._batching)
        self._order: deque[int] = deque()  # numbers of the batches under way
        self._worker_of: dict[int, int] = {}
        self._active = list(range(pool.count))
        self._turn = 0
        self._epoch = pool.start_epoch(draw_seed(loader.generator), loader.timeout)
        self._most = loader.prefetch_factor * pool.count
        for _ in range(min(self._most, _AT_FIRST * pool.count)):
            self._order_one()

    def __len__(self) -> int:
        return self._length()

    def _order_one(self, who: Optional[int] = None) -> None:
        """Have a worker make the next batch: this one, or the next in turn."""
        if not self._active:
            return
        indices = next(self._sampler_iter, _NOTHING)
        if indices is _NOTHING:
            return
        if who not in self._active:
            who = self._active[self._turn % len(self._active)]
            self._turn += 1
        number = self._pool.order(who, indices)
        self._worker_of[number] = who
        self._order.append(number)

    @record_function("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
    def __next__(self) -> Any:
        if self._epoch != self._pool.epoch:
            raise RuntimeError(
                "DataLoader: expected the iterator of the newest epoch, got an older one"
            )
        while self._order:
            if self._in_order:
                number = self._order.popleft()
            else:
                number = self._pool.first(self._order, self._timeout)
                self._order.remove(number)
            kind, value = self._pool.result(number, self._timeout)
            who = self._worker_of.pop(number)
            if kind == "end" and who in self._active:
                # This worker's part of the dataset is through; others may have more.
                self._active.remove(who)
            # Without an order to keep, a quick worker gets more to do.
            self._order_one(None if self._in_order else who)
            if len(self._order) < self._most:
                self._order_one()
            if kind == "error":
                value.reraise()
            if kind == "batch":
                self._num_yielded += 1
                return self._pinned(value)
        if not self._keep:
            self._pool.close()
        raise StopIteration


_NOTHING = object()
_AT_FIRST = 16  # batches per worker that are ordered before the first is taken
