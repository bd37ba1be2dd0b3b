"""The devices that there are, and the module of each: treadle.cpu, treadle.cuda, treadle.NAME.

A device is there if a tensor can be made on it, which takes a backend for it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
from typing import Any, Dict, Optional

from treadle import _C

# Devices that the package knows but does not have: a backend may bring them.
ABSENT = ("mps", "xpu")

# The modules of devices that have a backend, by their kind: see install.
modules: Dict[str, Any] = {}


def is_available(place: str) -> bool:
    """Whether tensors can be made on a device: "cuda", "cuda:1"."""
    try:
        _C.empty((0,), device=place)
    except (RuntimeError, NotImplementedError):
        return False
    return True


def count(kind: str) -> int:
    """How many devices of a kind there are."""
    number = 0
    while is_available(f"{kind}:{number}"):
        number += 1
    return number


def only_backend() -> Optional[str]:
    """The kind of device that has a backend, where there is one such kind; else None."""
    names = _C._backends()
    return names[0] if len(names) == 1 else None


def current_accelerator(check_available: bool = False) -> Optional[_C.device]:
    """The device, without its number; None where there is none, or several kinds."""
    name = only_backend() or ("cuda" if is_available("cuda") else None)
    return None if name is None else _C.device(name)


def module_of(name: str) -> Any:
    """The module of a device from outside; KeyError where there is none of the name."""
    return modules[name]


def get_device_module(device: Any = None) -> Any:
    """The module with the functions of a device's kind: treadle.cpu, treadle.cuda, treadle.NAME.
    None is the accelerator, or the CPU where there is none. RuntimeError for a device without a
    module."""
    place = (current_accelerator() or "cpu") if device is None else device
    kind = _C.device(place).type
    if kind in _C._backends():
        return module_of(kind)
    if kind not in ("cpu", "cuda", *ABSENT):
        raise RuntimeError(f"get_device_module: expected a device with a module, got {kind}")
    return importlib.import_module(f"treadle.{kind}")
