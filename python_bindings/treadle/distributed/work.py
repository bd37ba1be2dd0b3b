"""A handle of communication that goes on beside the program: what `async_op=True` returns."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from datetime import timedelta
from typing import Any, Callable, List, Optional

from treadle.distributed.errors import DistNetworkError
from treadle.futures import Future


class Work:
    """Communication that was begun. Its tensors may be used after wait()."""

    def __init__(self, tensors: List[Any]) -> None:
        self._future: Future = Future()
        self._tensors = tensors

    def run(self, task: Callable[[], None]) -> None:
        """Do it now, in this thread; what it raises, wait() does."""
        try:
            task()
        except Exception as error:
            self._future.set_exception(error)
        else:
            self._future.set_result(self._tensors)

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        return self._future.done()

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Optional[BaseException]:
        """The error that it ended with; None if there is none yet."""
        return self._future._exception

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Wait for its end; raises what went wrong. DistNetworkError after the timeout."""
        if timeout is not None and not self._future._wait_for(timeout.total_seconds()):
            raise DistNetworkError(
                f"wait: expected an end within {timeout.total_seconds():g} s, got none"
            )
        self._future.wait()
        return True

    def synchronize(self) -> None:
        """The same as wait()."""
        self.wait()

    def result(self) -> List[Any]:
        """Its tensors."""
        self.wait()
        return self._tensors

    def get_future(self) -> Future:
        """A future of its tensors."""
        return self._future


class LateWork(Work):
    """Communication that is done when it is waited for: a receive that was announced."""

    def __init__(
        self,
        tensors: List[Any],
        task: Callable[[], None],
        is_there: Callable[[], bool],
        look: Callable[[timedelta], None],
    ) -> None:
        super().__init__(tensors)
        self._task = task
        self._is_there = is_there
        self._look = look

    def is_completed(self) -> bool:
        """Whether the data has come."""
        return self._future.done() or self._is_there()

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Take the data, as soon as it comes. DistNetworkError after the timeout, that of the group
        if it is None; a later wait() may still get the data."""
        if not self._future.done():
            if timeout is not None and not self._is_there():
                self._look(timeout)  # nothing is taken where it raises
            self.run(self._task)
        return super().wait()

    def get_future(self) -> Future:
        """A future of its tensors, which waits for them first."""
        self.wait()
        return self._future
