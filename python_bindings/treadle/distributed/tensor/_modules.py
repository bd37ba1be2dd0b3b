"""Modules whose parameters are spread."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
import warnings
from typing import Any, Callable, Optional

from treadle import nn
from treadle.distributed.device_mesh import DeviceMesh, _mesh_resources
from treadle.distributed.tensor._api import DTensor, distribute_tensor
from treadle.distributed.tensor.placement_types import Replicate


def _replicate(module: nn.Module, mesh: DeviceMesh) -> None:
    """Replicate the parameters and buffers of a module that are no DTensors."""
    places = [Replicate()] * mesh.ndim
    for name, parameter in list(module._parameters.items()):
        if parameter is not None and not isinstance(parameter, DTensor):
            spread = distribute_tensor(parameter.data, mesh, places)
            made = nn.Parameter(spread, requires_grad=parameter.requires_grad)
            module.register_parameter(name, made)
    for name, buffer in list(module._buffers.items()):
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[name] = distribute_tensor(buffer, mesh, places)


def _with_mesh(name: str, function: Callable, mesh: DeviceMesh) -> Callable[..., Any]:
    """A hook's function, which takes the module, the inputs or outputs, and the mesh; older ones do
    not take the module."""
    count = len(inspect.signature(function).parameters)
    if count == 3:
        return lambda module, values: function(module, values, mesh)
    if count == 2:
        values = "inputs" if name == "input_fn" else "outputs"
        warnings.warn(
            f"Deprecating {name} that takes two arguments ({values}, device_mesh), please use "
            f"{name} that takes in (module, {values}, device_mesh) instead!",
            FutureWarning,
            stacklevel=3,
        )
        return lambda module, values: function(values, mesh)
    raise ValueError(f"{name} should take in 3 arguments, but got {count} arguments!")


def distribute_module(
    module: nn.Module,
    device_mesh: Optional[DeviceMesh] = None,
    partition_fn: Optional[Callable] = None,
    input_fn: Optional[Callable] = None,
    output_fn: Optional[Callable] = None,
) -> nn.Module:
    """Spread the parameters and buffers of a module, and of the modules within it, in place.

    Args:
        module: the module.
        device_mesh: the mesh; by default the one that the program is in.
        partition_fn: called with (name, module, mesh) for each module; spreads its parameters. What
            it leaves is replicated.
        input_fn: called with (module, inputs, mesh) before each call of the module; what it returns
            replaces the inputs.
        output_fn: called with (module, outputs, mesh) after each call; likewise.

    Returns the module. RuntimeError if that was done already, ValueError for functions with other
    arguments.
    """
    if getattr(module, "_distribute_module_applied", False):
        raise RuntimeError(
            "distribute_module should only be called once on a module, but it has already been "
            "called on this module!"
        )
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        _replicate(part, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(_with_mesh("input_fn", input_fn, mesh))
    if output_fn is not None:
        prepared = _with_mesh("output_fn", output_fn, mesh)
        module.register_forward_hook(lambda mod, inputs, outputs: prepared(mod, outputs))
    module._distribute_module_applied = True
    return module


__all__ = ["distribute_module"]
