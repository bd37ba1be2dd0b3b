"""A hook of several collectives, where each needs the result of the one before: the first begins
beside backward(), the others at its end, in the same order in all processes.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, TypeVar

from treadle.futures import Future

T = TypeVar("T")
S = TypeVar("S")


class Stages(Future[T]):
    """A future whose value wait() computes, in the thread that calls it."""

    def __init__(self, compute: Callable[[], T]) -> None:
        super().__init__()
        self._compute = compute

    def wait(self) -> T:
        """The value, or the exception that its computation raised."""
        if not self.done():
            try:
                value = self._compute()
            except Exception as error:
                self.set_exception(error)
            else:
                self.set_result(value)
        return super().wait()

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of what `callback(self)` returns, which is also computed by wait()."""

        def compute() -> Any:
            self.wait()
            return callback(self)

        return Stages(compute)


__all__ = ["Stages"]
