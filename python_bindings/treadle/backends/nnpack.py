"""NNPACK, a library of convolutions: nothing here calls it, and its switch keeps what a program
sets."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Iterator, Tuple

enabled = False


def is_available() -> bool:
    """Whether the library is there."""
    return False


def set_flags(_enabled: bool) -> Tuple[bool]:
    """Set the switch; gives what it was, in a tuple."""
    global enabled
    before, enabled = enabled, bool(_enabled)
    return (before,)


@contextlib.contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """The switch, for a while."""
    (before,) = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before)
