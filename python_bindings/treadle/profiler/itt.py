"""Marks and ranges for a profiler of Intel's, which nothing here calls.

Example:

    if itt.is_available():
        with itt.range("forward"): ...
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Iterator, NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """Whether the profiler is there."""
    return False


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(
        f"itt.{name}: expected the profiler of Intel's, which is not there; is_available() says so"
    )


def mark(msg: str) -> None:
    """Mark a moment. RuntimeError where the profiler is not there."""
    _refuse("mark")


def range_push(msg: str) -> int:
    """Begin a range; gives how many are around it. RuntimeError where the profiler is not there."""
    _refuse("range_push")


def range_pop() -> int:
    """End the last range. RuntimeError where the profiler is not there."""
    _refuse("range_pop")


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:  # noqa: A001  PyTorch's name
    """A range for a block; `msg` is formatted with the arguments. RuntimeError where the profiler
    is not there."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
