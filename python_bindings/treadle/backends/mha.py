"""Whether MultiheadAttention may take a faster way in evaluation: its results are the same, and the
switch is kept and changes nothing."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

_enabled = True


def get_fastpath_enabled() -> bool:
    """The last value given to set_fastpath_enabled(); True to begin with."""
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Set it."""
    global _enabled
    _enabled = bool(value)
