"""KleidiAI, a library of products for ARM: nothing here calls it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations


def is_available() -> bool:
    """Whether the library is there."""
    return False
