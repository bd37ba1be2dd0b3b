"""Questions that programs ask of the compiler before they use it."""

from __future__ import annotations

from typing import Any


def is_compile_supported(device_type: Any) -> bool:
    """Whether programs for a device are compiled: none is."""
    return False
