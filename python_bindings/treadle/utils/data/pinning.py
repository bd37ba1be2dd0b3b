"""Batches in memory of the CPU from which a device copies faster.

Example:

    for x, y in DataLoader(data, pin_memory=True):
        x = x.to("mine", non_blocking=True)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, Callable, Optional

from treadle._C import Tensor
from treadle._device import registry


def pin_memory(data: Any, device: Optional[str] = None) -> Any:
    """The batch with its tensors in pinned memory, in containers of the same types; an object of
    another type that has a method `pin_memory` is asked for its own. Where the device has no such
    memory, tensors stay as they are."""
    if isinstance(data, Tensor):
        return data.pin_memory(device) if data.device.type == "cpu" else data
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _mapping(data, device)
    if isinstance(data, tuple) and hasattr(data, "_fields"):  # a named one
        return type(data)(*(pin_memory(value, device) for value in data))
    if isinstance(data, tuple):
        return [pin_memory(value, device) for value in data]
    if isinstance(data, Sequence):
        return _sequence(data, device)
    return data.pin_memory() if hasattr(data, "pin_memory") else data


def _mapping(data: Mapping, device: Optional[str]) -> Any:
    pinned = {key: pin_memory(value, device) for key, value in data.items()}
    try:
        if isinstance(data, MutableMapping):
            import copy

            clone = copy.copy(data)
            clone.update(pinned)
            return clone
        return type(data)(pinned)  # type: ignore[call-arg]
    except TypeError:
        return pinned


def _sequence(data: Sequence, device: Optional[str]) -> Any:
    pinned = [pin_memory(value, device) for value in data]
    try:
        return type(data)(pinned)  # type: ignore[call-arg]
    except TypeError:
        return pinned


def pinning_of(loader: Any) -> Callable[[Any], Any]:
    """The function that moves a batch of a loader to pinned memory, where the loader asks for that
    and a device has it; else the one that leaves it as it is."""
    device = loader.pin_memory_device or registry.only_backend()
    if not loader.pin_memory or device is None:
        return _as_it_is
    return functools.partial(pin_memory, device=device)


def _as_it_is(batch: Any) -> Any:
    return batch
