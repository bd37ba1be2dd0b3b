"""Time limits of parts of a worker: a process that is in such a part for too long is killed by a
server in the process that started it, and the agent starts the workers anew.

    server = LocalTimerServer(queue)                  # in the parent
    server.start()

    configure(LocalTimerClient(queue))                # in a worker
    with expires(after=60):
        train_step()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple


@dataclass
class TimerRequest:
    """A worker begins a part that ends before `expiration_time`, in seconds since 1970; or, with a
    negative time, has ended it."""

    worker_id: Any
    scope_id: str
    expiration_time: float


class TimerClient(ABC):
    """Tells a server of the parts of this worker."""

    @abstractmethod
    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """A part begins, which has to end before that time."""

    @abstractmethod
    def release(self, scope_id: str) -> None:
        """The part has ended."""


class LocalTimerClient(TimerClient):
    """Tells a server of the same machine, over a queue of multiprocessing."""

    def __init__(self, mp_queue: Any) -> None:
        self._queue = mp_queue

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """A part begins, which has to end before that time."""
        self._queue.put(TimerRequest(os.getpid(), scope_id, expiration_time))

    def release(self, scope_id: str) -> None:
        """The part has ended."""
        self._queue.put(TimerRequest(os.getpid(), scope_id, -1))


class LocalTimerServer:
    """Kills the processes that are late. It looks at least every `max_interval` seconds, and when a
    process is due."""

    def __init__(self, mp_queue: Any, max_interval: float = 60, daemon: bool = True) -> None:
        self._queue = mp_queue
        self._interval = max_interval
        self._daemon = daemon
        self._timers: Dict[Tuple[Any, str], TimerRequest] = {}
        self._stopping = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def register_timers(self, timer_requests: List[TimerRequest]) -> None:
        """Take note of parts that begin and end."""
        for request in timer_requests:
            key = request.worker_id, request.scope_id
            if request.expiration_time < 0:
                self._timers.pop(key, None)
            else:
                self._timers[key] = request

    def clear_timers(self, worker_ids: Set[Any]) -> None:
        """Forget the parts of these workers."""
        self._timers = {key: each for key, each in self._timers.items() if key[0] not in worker_ids}

    def get_expired_timers(self, deadline: float) -> Dict[Any, List[TimerRequest]]:
        """The parts, by worker, that had to end by this time."""
        found: Dict[Any, List[TimerRequest]] = {}
        for request in self._timers.values():
            if request.expiration_time <= deadline:
                found.setdefault(request.worker_id, []).append(request)
        return found

    def _until_due(self) -> float:
        due = min((each.expiration_time for each in self._timers.values()), default=float("inf"))
        return min(self._interval, max(due - time.time(), 0.0))

    def _run(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(queue.Empty):
                # The thread waits in short turns, so that stop() takes no longer.
                self.register_timers([self._queue.get(timeout=min(self._until_due(), 0.2))])
            late = set(self.get_expired_timers(time.time()))
            for worker in late:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            if late:
                self.clear_timers(late)

    def start(self) -> None:
        """Begin to watch, in a thread."""
        self._thread = threading.Thread(target=self._run, name="timers", daemon=self._daemon)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None


_client: Optional[TimerClient] = None


def configure(timer_client: TimerClient) -> None:
    """Choose the client of expires()."""
    global _client
    _client = timer_client


@contextlib.contextmanager
def expires(
    after: float, scope: Optional[str] = None, client: Optional[TimerClient] = None
) -> Iterator[None]:
    """While the context lasts, this process may be killed once `after` seconds are over. `scope` is
    a name for the part, by default its place in the program. RuntimeError without a client."""
    teller = client or _client
    if teller is None:
        raise RuntimeError("expires: expected a client, got none; call timer.configure() first")
    if scope is None:
        caller = sys._getframe(2)
        scope = f"{caller.f_code.co_filename}#{caller.f_lineno}"
    teller.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        teller.release(scope)


__all__ = [
    "LocalTimerClient",
    "LocalTimerServer",
    "TimerClient",
    "TimerRequest",
    "configure",
    "expires",
]
