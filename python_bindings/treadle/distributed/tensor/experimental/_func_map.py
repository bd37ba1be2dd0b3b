"""local_map: a function of what each process has, as a function of tensors that are spread."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
from typing import Any, Callable, List, Optional

from treadle._C import Tensor
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor._api import DTensor
from treadle.utils import _pytree as pytree


def local_map(
    func: Optional[Callable] = None,
    out_placements: Any = None,
    in_placements: Any = None,
    in_grad_placements: Any = None,
    device_mesh: Optional[DeviceMesh] = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable:
    """A function of DTensors that calls `func` with what this process has of them.

    Args:
        func: the function of tensors of one process. Without it, a decorator is returned.
        out_placements: the placements of the result, or a tuple of placements for several; None for
            one that is no tensor, and for a replicated one.
        in_placements: a tuple of the placements that each argument has to have; None for one that
            is no tensor. By default those that they have.
        in_grad_placements: a tuple of the placements that the gradients of the arguments have.
        device_mesh: the mesh of the results, by default that of the arguments.
        redistribute_inputs: whether arguments with other placements are brought to these.

    Without DTensors among the arguments, `func` is called, and its result returned as it is.
    ValueError if an argument has other placements, or is on another mesh.
    """
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            in_grad_placements=in_grad_placements,
            device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )
    inner = func

    @functools.wraps(inner)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        flat, structure = pytree.tree_flatten((args, kwargs))
        spread = [value for value in flat if isinstance(value, DTensor)]
        if not spread:
            return inner(*args, **kwargs)
        mesh = device_mesh or spread[0].device_mesh
        if in_placements is not None and len(in_placements) != len(flat):
            raise ValueError(
                f"local_map: expected in_placements for {len(flat)} arguments, got "
                f"{len(in_placements)}"
            )
        found = [
            _local(
                value,
                None if in_placements is None else in_placements[i],
                None if in_grad_placements is None else in_grad_placements[i],
                mesh,
                redistribute_inputs,
            )
            for i, value in enumerate(flat)
        ]
        local_args, local_kwargs = pytree.tree_unflatten(found, structure)
        return _spread(inner(*local_args, **local_kwargs), out_placements, mesh)

    return mapped


def _local(value: Any, wanted: Any, gradient: Any, mesh: DeviceMesh, may_change: bool) -> Any:
    if not isinstance(value, DTensor):
        return value
    if value.device_mesh != mesh:
        raise ValueError(f"local_map: expected a DTensor on {mesh}, got one on {value.device_mesh}")
    if wanted is not None and value.placements != tuple(wanted):
        if not may_change:
            raise ValueError(
                f"local_map: expected a DTensor with placements {tuple(wanted)}, got "
                f"{value.placements}; redistribute_inputs = True changes them"
            )
        value = value.redistribute(mesh, wanted)
    return value.to_local(grad_placements=gradient)


def _spread(result: Any, placements: Any, mesh: DeviceMesh) -> Any:
    flat, structure = pytree.tree_flatten(result)
    if len(flat) == 1 and not (placements and isinstance(placements[0], (tuple, list))):
        placements = (placements,)
    if placements is None or len(placements) != len(flat):
        raise ValueError(
            f"local_map: expected out_placements for {len(flat)} results, got "
            f"{0 if placements is None else len(placements)}"
        )
    found: List[Any] = []
    for value, each in zip(flat, placements):
        if isinstance(value, Tensor):
            value = DTensor.from_local(value, mesh, each, run_check=False)
        elif each is not None:
            raise ValueError(
                f"local_map: expected None in out_placements for a {type(value).__name__}, got "
                f"{each}"
            )
        found.append(value)
    return pytree.tree_unflatten(found, structure)


__all__ = ["local_map"]
