"""Marks for NVIDIA's profilers: taken and dropped, as there is none of them to read them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Iterator

_depth = 0


def mark(msg: str) -> None:
    """A moment."""


def range_push(msg: str) -> int:
    """Open a range in the one that is open; returns how many were open."""
    global _depth
    _depth += 1
    return _depth - 1


def range_pop() -> int:
    """Close the innermost range; returns how many stay open, -1 where none was."""
    global _depth
    _depth = max(_depth, 0) - 1
    left, _depth = _depth, max(_depth, 0)
    return left


def range_start(msg: str) -> int:
    """Open a range that may overlap others; returns its number."""
    return 0


def range_end(range_id: int) -> None:
    """Close the range of that number."""


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range for the block."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]
