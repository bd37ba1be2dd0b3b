"""OpenMP, whose pool of threads all operators share."""

from __future__ import annotations


def is_available() -> bool:
    """Whether operators run on OpenMP's threads."""
    return True
