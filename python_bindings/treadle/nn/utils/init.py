"""Layers whose parameters are not filled with numbers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
from typing import Any, Type

from treadle import nn


def skip_init(module_cls: Type[nn.Module], *args: Any, **kwargs: Any) -> nn.Module:
    """A layer of a class, made with the arguments, in memory as it comes. RuntimeError for what is
    no class of modules, and for one whose arguments have no `device`."""
    if not (isinstance(module_cls, type) and issubclass(module_cls, nn.Module)):
        raise RuntimeError(f"skip_init: expected a class of modules, got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(
            f"skip_init: expected a class that takes device, got {module_cls.__name__}"
        )
    device = kwargs.pop("device", None)
    made = module_cls(*args, device="meta", **kwargs)
    return made.to_empty(device="cpu" if device is None else device)


__all__ = ["skip_init"]
