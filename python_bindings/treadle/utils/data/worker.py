"""The program of a worker process: it is handed indices and hands back batches, until it is told to
stop.

A worker never outlives its parent: a thread of its own waits for orders, and when the pipe closes
or the process has another parent, the worker ends at once, whatever the dataset is doing.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import queue
import random
import signal
import sys
import threading
from typing import Any, Callable, List, Optional

from treadle import _C
from treadle.random import manual_seed
from treadle.utils._exception_wrapper import ExceptionWrapper

from . import transport
from .fetch import make_fetcher
from .worker_info import WorkerInfo, set_worker_info

_LOOK_FOR_PARENT_EVERY = 0.5  # seconds


class WorkerJob:
    """Everything a worker needs to know from the start."""

    def __init__(
        self,
        worker_id: int,
        num_workers: int,
        dataset: Any,
        batched: bool,
        collate: Callable,
        drop_last: bool,
        init: Optional[Callable[[int], None]],
        parent: int,
    ) -> None:
        self.worker_id = worker_id
        self.num_workers = num_workers
        self.dataset = dataset
        self.batched = batched
        self.collate = collate
        self.drop_last = drop_last
        self.init = init
        self.parent = parent


def run(job: WorkerJob, connection: Any, inherited: list) -> None:
    """The body of a worker process. `inherited` are ends of pipes that belong to the main
    process."""
    # Ctrl-C reaches every process of a terminal: the main one decides what happens to its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        other.close()
    # Threads of the parent do not exist here, and their pool must not be waited for.
    _C.set_num_threads(1)
    orders = _Orders()
    threading.Thread(target=_listen, args=(connection, orders, os.getppid()), daemon=True).start()
    try:
        _serve(job, connection, orders)
    except (BrokenPipeError, ConnectionResetError, EOFError):
        pass  # nobody is waiting for the answer any more
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def _listen(connection: Any, orders: _Orders, parent: int) -> None:
    try:
        while True:
            while not connection.poll(_LOOK_FOR_PARENT_EVERY):
                if os.getppid() != parent:
                    os._exit(1)
            orders.put(connection.recv())
    except (EOFError, OSError):
        # A worker that was told to end, and has nothing left to do, does so by itself: what it has
        # registered for its end runs. One that is busy may never come to it.
        if not orders.is_ending():
            os._exit(1)


class _Orders:
    """The orders that the worker has not done yet."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._left = 0
        self._last = False
        self._lock = threading.Lock()

    def put(self, order: Any) -> None:
        with self._lock:
            self._last = order is None
            self._left += order is not None
        self._queue.put(order)

    def get(self) -> Any:
        return self._queue.get()

    def done(self) -> None:
        with self._lock:
            self._left -= 1

    def is_ending(self) -> bool:
        with self._lock:
            return self._last and self._left == 0


def _serve(job: WorkerJob, connection: Any, orders: _Orders) -> None:
    fetcher: Any = None
    where = f"in DataLoader worker process {job.worker_id}"
    failure: Optional[ExceptionWrapper] = None
    started = False
    while True:
        order = orders.get()
        if order is None:
            return
        kind, number, value = order
        if kind == "epoch":
            failure, fetcher = None, None
            try:
                _seed(job, value)
                if not started and job.init is not None:
                    job.init(job.worker_id)
                started = True
                fetcher = make_fetcher(job.dataset, job.batched, job.collate, job.drop_last)
            except BaseException:
                failure = ExceptionWrapper(where=where)
            orders.done()
            continue
        answer: tuple = ("end", number, None)
        if failure is not None:
            answer = ("error", number, failure)
        else:
            try:
                answer = ("batch", number, fetcher.fetch(value))
            except StopIteration:
                if not hasattr(fetcher, "iterator"):
                    answer = ("error", number, ExceptionWrapper(where=where))
            except BaseException:
                answer = ("error", number, ExceptionWrapper(where=where))
        orders.done()  # before the answer, after which the order to end may come at once
        _answer(connection, answer, job.parent, where)


def _answer(connection: Any, answer: tuple, parent: int, where: str) -> None:
    try:
        transport.send(connection, answer, parent)
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception:  # the batch cannot be pickled
        transport.send(connection, ("error", answer[1], ExceptionWrapper(where=where)), parent)


def _generate_state(base_seed: int, worker_id: int) -> List[int]:
    """Four numbers of 32 bits to seed another generator with, other ones for each worker."""
    from numpy.random import SeedSequence

    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return SeedSequence(entropy).generate_state(4).tolist()


def _seed(job: WorkerJob, base_seed: int) -> None:
    """Random numbers of every kind differ between workers and follow from the loader's seed."""
    seed = base_seed + job.worker_id
    random.seed(seed)
    manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)
    set_worker_info(WorkerInfo(job.worker_id, job.num_workers, seed, job.dataset))
