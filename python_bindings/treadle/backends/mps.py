"""Whether there is a graphics processor of Apple's; see treadle.mps."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from treadle import mps


def is_built() -> bool:
    """Whether the library was built for one."""
    return False


def is_available() -> bool:
    """Whether tensors can be made on one."""
    return mps.is_available()


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Whether the system is that version of macOS, with such a processor, or a newer one."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Whether it is macOS 13."""
    return is_macos_or_newer(13, minor)
