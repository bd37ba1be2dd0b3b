"""A value that comes later: what communication between processes and jit.fork return.

future.then(lambda f: f.value() + 1).wait()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from typing import Any, Callable, Generic, List, Optional, TypeVar, cast

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value, or an exception, that some thread will set once."""

    def __init__(self, *, devices: Optional[List[Any]] = None) -> None:
        self._changed = threading.Condition()
        self._is_done = False
        self._value: Any = None
        self._exception: Optional[BaseException] = None
        self._callbacks: List[Callable[[Future[T]], None]] = []

    def done(self) -> bool:
        """Whether the value, or the exception, is there."""
        return self._is_done

    def wait(self) -> T:
        """The value, as soon as it is there; raises the exception if there is one instead."""
        with self._changed:
            self._changed.wait_for(self.done)
        if self._exception is not None:
            raise self._exception
        return cast(T, self._value)

    def _wait_for(self, seconds: float) -> bool:
        """Wait at most so long; returns whether it is done."""
        with self._changed:
            return self._changed.wait_for(self.done, seconds)

    def value(self) -> T:
        """The value, which must be there: RuntimeError if it is not."""
        if not self._is_done:
            raise RuntimeError("Future.value: expected a future that is done, got one that is not")
        return self.wait()

    def set_result(self, result: T) -> None:
        """Set the value and run the callbacks in this thread. RuntimeError the second time."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Set the exception that wait() raises."""
        if not isinstance(result, Exception):
            kind = type(result).__name__
            raise AssertionError(f"Future.set_exception: expected an exception, got {kind}")
        self._finish(None, result)

    def _finish(self, value: Any, exception: Optional[BaseException]) -> None:
        with self._changed:
            if self._is_done:
                raise RuntimeError("Future.set_result: expected one call, got a second")
            self._value, self._exception, self._is_done = value, exception, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(self)` when the value is there; at once if it is."""
        with self._changed:
            if not self._is_done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of what `callback(self)` returns, called when the value is there."""
        following: Future[S] = Future()

        def call(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(result)

        self.add_done_callback(call)
        return following


def collect_all(futures: List[Future]) -> Future[List[Future]]:
    """A future of the list itself, there when all of its futures are done."""
    collected: Future[List[Future]] = Future()
    left = [len(futures)]
    lock = threading.Lock()

    def count(_: Future) -> None:
        with lock:
            left[0] -= 1
            is_last = left[0] == 0
        if is_last:
            collected.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        collected.set_result(futures)
    return collected


def wait_all(futures: List[Future]) -> List[Any]:
    """The values of all, when the last is there; raises the first exception in the list."""
    return [future.wait() for future in collect_all(futures).wait()]


__all__ = ["Future", "collect_all", "wait_all"]
