"""KleidiAI, a library of products for ARM: nothing here calls it."""

from __future__ import annotations


def is_available() -> bool:
    """Whether the library is there."""
    return False
