"""The mean of parameters over processes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Union

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad

Parameters = Union[Iterable[Tensor], Iterable[Dict[str, Any]]]


def average_parameters(params: Iterable[Tensor], process_group: Any) -> None:
    """Replace the parameters by their means over the group, with one message for each dtype. A
    process outside of the group does nothing."""
    if dist.get_rank(process_group) < 0:
        return
    by_dtype: Dict[Any, List[Tensor]] = {}
    for parameter in params:
        by_dtype.setdefault(parameter.dtype, []).append(parameter)
    with no_grad():
        for parameters in by_dtype.values():
            flat = _C.cat([parameter.detach().reshape(-1) for parameter in parameters])
            flat /= dist.get_world_size(process_group)
            dist.all_reduce(flat, group=process_group)
            pieces = flat.split([parameter.numel() for parameter in parameters])
            for parameter, piece in zip(parameters, pieces):
                parameter.copy_(piece.view(parameter.shape))


def get_params_to_average(params: Parameters) -> List[Tensor]:
    """The parameters that have a gradient, of a module's parameters or an optimizer's groups.
    TypeError for anything else."""
    found: List[Tensor] = []
    for item in params:
        if isinstance(item, Tensor):
            found.append(item)
        elif isinstance(item, dict):
            found += item["params"]
        else:
            raise TypeError(
                "get_params_to_average: expected parameters or groups of an optimizer, got "
                f"{type(item).__name__}"
            )
    return [parameter for parameter in found if parameter.grad is not None]


def average_parameters_or_parameter_groups(params: Parameters, process_group: Any) -> None:
    """average_parameters() of those that have a gradient."""
    average_parameters(get_params_to_average(params), process_group)


__all__ = [
    "average_parameters",
    "average_parameters_or_parameter_groups",
    "get_params_to_average",
]
