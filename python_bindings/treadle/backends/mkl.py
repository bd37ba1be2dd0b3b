"""Intel's Math Kernel Library: matrix products run on OpenBLAS instead."""

from __future__ import annotations


VERBOSE_OFF, VERBOSE_ON = range(2)


def is_available() -> bool:
    """Whether the library is there."""
    return False
