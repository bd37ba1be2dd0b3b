"""Copies of a module on several devices, whose gradients arrive at the module."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from ..modules.module import Module


def _replica(module: Module, device: Any, detach: bool, made: Dict[Module, Module]) -> Module:
    if module in made:
        return made[module]
    copy = made[module] = module.__new__(type(module))
    copy.__dict__ = dict(module.__dict__)
    tensors = [("_parameters", module._parameters), ("_buffers", module._buffers)]
    for name, held in tensors:
        moved = {key: None if t is None else t.to(device) for key, t in held.items()}
        if detach:
            moved = {key: None if t is None else t.detach() for key, t in moved.items()}
        copy.__dict__[name] = moved
    copy.__dict__["_modules"] = {
        key: None if child is None else _replica(child, device, detach, made)
        for key, child in module._modules.items()
    }
    return copy


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> List[Module]:
    """A copy of the module for each device. Its parameters are those of the module, moved there;
    with `detach` no gradient comes back from them."""
    return [_replica(network, device, detach, {}) for device in devices]
