"""Intel's Math Kernel Library, which Treadle does not use."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

VERBOSE_OFF, VERBOSE_ON = range(2)


def is_available() -> bool:
    """Whether the library is there."""
    return False
