"""Where a program for phones is loaded to."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C


def validate_map_location(map_location: Any = None) -> Any:
    """A device, or None; ValueError for what is neither it nor its name, RuntimeError for a device
    that is not there."""
    if map_location is None:
        return None
    if not isinstance(map_location, (str, _C.device)):
        raise ValueError(
            f"map_location: expected a device, its name or None, got {type(map_location).__name__}"
        )
    device = _C.device(map_location)
    _C.empty(0, device=device)  # says what is missing where it is not there
    return device
