"""A handle of communication that goes on beside the program: what `async_op=True` returns."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import sys
import threading
from datetime import timedelta
from typing import Any, Callable, List, Optional, Sequence

from treadle.distributed.errors import DistError, DistNetworkError
from treadle.futures import Future, collect_all


class Work:
    """Communication that was begun. Its tensors may be used after wait().

    A transport of a program derives its own class from this one, with is_completed() and wait().
    """

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method is_completed")

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Wait for its end; raises what went wrong. DistNetworkError after the timeout."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method wait")

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Optional[BaseException]:
        """The error that it ended with; None if there is none yet."""
        return None

    def synchronize(self) -> None:
        """The same as wait()."""
        self.wait()

    def block_current_stream(self) -> None:
        """The same as wait(): work on the CPU has no streams."""
        self.wait()

    def result(self) -> List[Any]:
        """Its tensors."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method result")

    def get_future(self) -> Future:
        """A future of its tensors."""
        future: Future = Future()
        self.wait()
        future.set_result(self.result())
        return future

    def _source_rank(self) -> int:
        """The rank of the group that a message came from."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method _source_rank")


class EngineWork(Work):
    """A call that an engine does. `after` runs once, when the data is there: it copies the data to
    where it belongs. `explain` makes the error that the program sees of the engine's."""

    def __init__(
        self,
        handle: Any,
        tensors: Any,
        kept: Any = (),
        after: Optional[Callable[[], None]] = None,
        explain: Optional[Callable[[DistError], DistError]] = None,
    ) -> None:
        self._explain = explain
        self._error: Optional[BaseException] = None
        self._explaining = threading.Lock()
        self._handle = handle  # None where the call is done
        self._tensors = tensors
        self._kept = kept  # memory that the engine uses
        self._after = after
        self._lock = threading.Lock()
        self._future: Optional[Future] = None

    def _then(self, after: Callable[[], None]) -> None:
        """Do this, too, when the data is there."""
        first = self._after
        if first is None:
            self._after = after
        else:
            self._after = functools.partial(_both, first, after)
        if self._handle is None:
            self._ended()

    def _ended(self) -> None:
        """The data is there."""
        if self._after is not None:
            with self._lock:
                after, self._after = self._after, None
                if after is not None and self.exception() is None:
                    after()
        self._kept = ()

    def is_completed(self) -> bool:
        if self._handle is not None and not self._handle.is_done():
            return False
        self._ended()
        return True

    def exception(self) -> Optional[BaseException]:
        if self._handle is None:
            return None
        error = self._handle.exception()
        if error is None or self._explain is None:
            return error
        with self._explaining:
            if self._error is None:
                self._error = self._explain(error)
        return self._error

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        seconds = None if timeout is None else timeout.total_seconds()
        if self._handle is not None:
            if not self._handle.wait(seconds):
                raise DistNetworkError(f"wait: expected an end within {seconds:g} s, got none")
            error = self.exception()
            if error is not None:
                raise error
        self._ended()
        return True

    def result(self) -> List[Any]:
        self.wait()
        return self._tensors

    def _source_rank(self) -> int:
        return -1 if self._handle is None else self._handle.peer()

    def get_future(self) -> Future:
        """A future of its tensors, which ends when the work does."""
        with self._lock:
            if self._future is not None:
                return self._future
            future = self._future = Future()
        if self._handle is None:
            self._resolve()
        else:
            self._handle.on_done(self._resolve)
        return future

    def _resolve(self) -> None:
        assert self._future is not None
        error = self.exception()
        if error is not None:
            self._future.set_exception(error)
        else:
            self._ended()
            self._future.set_result(self._tensors)

    def __del__(self) -> None:
        """A call that nobody waits for goes on, and needs its memory."""
        handle = getattr(self, "_handle", None)
        if handle is not None and not handle.has_ended() and not sys.is_finalizing():
            kept = (self._tensors, self._kept)
            handle.on_done(lambda: _dropped(kept))


class Works(Work):
    """Several of them as one."""

    def __init__(self, works: Sequence[Work], tensors: Any) -> None:
        self._works = works
        self._tensors = tensors

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def exception(self) -> Optional[BaseException]:
        errors = (work.exception() for work in self._works)
        return next((error for error in errors if error is not None), None)

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        for work in self._works:
            work.wait(timeout)
        return True

    def result(self) -> List[Any]:
        self.wait()
        return self._tensors

    def get_future(self) -> Future:
        future: Future = Future()

        def finish(collected: Future) -> None:
            try:
                for each in collected.value():
                    each.value()
            except Exception as error:
                future.set_exception(error)
            else:
                future.set_result(self._tensors)

        collect_all([work.get_future() for work in self._works]).add_done_callback(finish)
        return future


def _both(first: Callable[[], None], second: Callable[[], None]) -> None:
    first()
    second()


def _dropped(_: Any) -> None:
    pass


__all__ = ["EngineWork", "Work", "Works"]
