"""Tasks of a storage: files that threads read or write."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Iterable, List

from treadle.futures import Future


def in_threads(count: int, function: Callable, tasks: Iterable[tuple]) -> List[Any]:
    """The results of `function` for the arguments of each task, by `count` threads."""
    if count == 1:
        return [function(*task) for task in tasks]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda task: function(*task), tasks))


def done(value: Any) -> Any:
    """A future that has the value."""
    future: Future[Any] = Future()
    future.set_result(value)
    return future


__all__ = ["done", "in_threads"]
