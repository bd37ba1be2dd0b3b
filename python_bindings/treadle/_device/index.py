"""The index of a device, where a program gives a number, a name, a device or nothing."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C


def index_of(name: str, device: Any) -> int:
    """The number of a device: given as a number, a name or a device; -1 for the current one."""
    if device is None:
        return -1
    if isinstance(device, int) and not isinstance(device, bool):
        return int(device)
    place = _C.device(device)
    if place.type != name:
        raise ValueError(f"expected a device of {name}, got {place}")
    return -1 if place.index is None else place.index
