"""State dictionaries with whole tensors, and with DTensors: from the one to the other."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Hashable, List, Tuple

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.distributed.checkpoint._spread import is_spread, local_box, local_part
from treadle.distributed.checkpoint.planner_helpers import narrow

# The header of a value that is sent: its key, the shape and dtype of a tensor, or the value itself.
_Header = Tuple[Hashable, Any, Any]


def mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """A state dictionary with each tensor replaced by what `change` makes of it."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(entry, change) for key, entry in value.items()}
    if type(value) in (list, tuple):
        return type(value)(mapped(entry, change) for entry in value)
    return value


def gathered(state: Dict[str, Any], is_full: bool, to_cpu: bool) -> Dict[str, Any]:
    """The state with whole tensors, if `is_full`; on the CPU, if `to_cpu`. With both, only the
    first process gets it, and the others an empty one."""
    keeps = not (is_full and to_cpu and dist.is_initialized() and dist.get_rank() != 0)

    def change(tensor: Any) -> Any:
        if is_full and is_spread(tensor):
            tensor = tensor.detach().full_tensor()
        if not keeps:
            return None
        return tensor.detach().cpu() if to_cpu else tensor

    found = mapped(state, change) if is_full or to_cpu else state
    return found if keeps else {}


def like(spread: Any, local: Tensor) -> Any:
    """A DTensor that is spread as another one, with what this process has of it."""
    return type(spread.detach()).from_local(
        local,
        spread.device_mesh,
        spread.placements,
        run_check=False,
        shape=spread.shape,
        stride=spread.stride(),
    )


def zeros_like(tensor: Any) -> Any:
    """Zeros, spread as a tensor is."""
    if is_spread(tensor):
        return like(tensor, _C.zeros_like(local_part(tensor)))
    return _C.zeros_like(tensor)


def sharded(name: Any, whole: Any, target: Any) -> Any:
    """A whole tensor as a DTensor that is spread as `target`. ValueError for another shape.
    Where either is not of its kind, the value as it is."""
    if not (isinstance(whole, Tensor) and is_spread(target)) or is_spread(whole):
        return whole
    if tuple(whole.shape) != tuple(target.shape):
        raise ValueError(
            f"expected a tensor of shape {tuple(target.shape)} for {name!r}, got shape "
            f"{tuple(whole.shape)}"
        )
    box = local_box(target)
    part = narrow(whole.detach(), box.offsets, box.sizes).clone()
    return like(target, part.to(local_part(target).device))


def received(
    values: Dict[Hashable, Any], keep: Callable[[Hashable, Any], Any]
) -> Dict[Hashable, Any]:
    """The values of the first process in all: of each, only what `keep(key, value)` makes of it
    stays, so that one whole tensor is in memory at a time."""
    is_first = dist.get_rank() == 0
    headers: List[Any] = [None]
    if is_first:
        headers = [[_header(key, value) for key, value in values.items()]]
    dist.broadcast_object_list(headers, src=0)
    found: Dict[Hashable, Any] = {}
    for key, geometry, value in headers[0]:
        if geometry is not None:
            shape, dtype = geometry
            if is_first:
                value = values[key].detach().cpu().contiguous()
            else:
                value = _C.empty(shape, dtype=dtype)
            dist.broadcast(value, src=0)
        found[key] = keep(key, value)
    return found


def _header(key: Hashable, value: Any) -> _Header:
    if isinstance(value, Tensor):
        return key, (tuple(value.shape), value.dtype), None
    return key, None, value


__all__ = ["gathered", "like", "mapped", "received", "sharded", "zeros_like"]
