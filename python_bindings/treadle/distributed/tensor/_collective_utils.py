"""The communication of tensors that are spread: functions of values, over a dimension of a mesh.

Tensors are sent without gradient; what is returned is new. Pieces of different sizes are made equal
before they are sent, and cut after.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from typing import Any, Callable, List, Optional, Sequence

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.reduce_op import ReduceOp


class _Observers(threading.local):
    """Functions that are told the name of each collective function that this thread calls here."""

    def __init__(self) -> None:
        self.functions: List[Callable[[str], None]] = []


observers = _Observers()

_WAYS = {
    "sum": ReduceOp.SUM,
    "avg": ReduceOp.AVG,
    "product": ReduceOp.PRODUCT,
    "min": ReduceOp.MIN,
    "max": ReduceOp.MAX,
}


def way_of(name: str) -> ReduceOp:
    """The operation of `Partial(name)`. ValueError for an unknown one."""
    if name not in _WAYS:
        raise ValueError(f"Partial: expected reduce_op of {', '.join(_WAYS)}, got {name!r}")
    return _WAYS[name]


def _say(name: str) -> None:
    for observer in observers.functions:
        observer(name)


def _sent(tensor: Tensor) -> Tensor:
    """The elements as they are sent: contiguous, those of bool as numbers."""
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return tensor.to(_C.uint8) if tensor.dtype == _C.bool else tensor


def _made(tensor: Tensor, like: Tensor) -> Tensor:
    return tensor.to(_C.bool) if like.dtype == _C.bool else tensor


def all_reduced(tensor: Tensor, way: str, mesh: DeviceMesh, mesh_dim: int) -> Tensor:
    """The values of all processes, reduced."""
    _say("all_reduce")
    result = _sent(tensor)
    if result.data_ptr() == tensor.data_ptr():
        result = result.clone()
    dist.all_reduce(result, way_of(way), group=mesh.get_group(mesh_dim))
    return _made(result, tensor)


def all_gathered(tensor: Tensor, mesh: DeviceMesh, mesh_dim: int) -> List[Tensor]:
    """The tensors of all processes, all of the shape of this one."""
    _say("all_gather_into_tensor")
    sent = _sent(tensor)
    count = mesh.size(mesh_dim)
    if not sent.numel():
        return [tensor.detach()] * count
    flat = sent.new_empty(count * sent.numel())
    dist.all_gather_into_tensor(flat, sent.reshape(-1), group=mesh.get_group(mesh_dim))
    return [_made(part.reshape(tensor.shape), tensor) for part in flat.chunk(count)]


def padded(tensor: Tensor, dim: int, length: int) -> Tensor:
    """The tensor with zeros behind its elements, up to a length of a dimension."""
    missing = length - tensor.shape[dim]
    if missing <= 0:
        return tensor
    shape = list(tensor.shape)
    shape[dim] = missing
    return _C.cat([tensor, tensor.new_zeros(shape)], dim)


def gathered_pieces(
    tensor: Tensor, dim: int, lengths: Sequence[int], mesh: DeviceMesh, mesh_dim: int
) -> List[Tensor]:
    """The tensors of all processes, which have these lengths of a dimension."""
    longest = max(lengths)
    whole = all_gathered(padded(tensor, dim, longest), mesh, mesh_dim)
    return [part.narrow(dim, 0, length) for part, length in zip(whole, lengths)]


def reduce_scattered(
    parts: Sequence[Tensor], dim: int, way: str, mesh: DeviceMesh, mesh_dim: int
) -> Tensor:
    """This process's part of the values of all processes, reduced. Parts differ in `dim` alone."""
    _say("reduce_scatter_tensor")
    longest = max(part.shape[dim] for part in parts)
    sent = _C.stack([_sent(padded(part, dim, longest)) for part in parts])
    mine = parts[mesh.get_local_rank(mesh_dim)]
    result = sent.new_empty(sent.shape[1:])
    if sent.numel():
        group = mesh.get_group(mesh_dim)
        dist.reduce_scatter_tensor(result.reshape(-1), sent.reshape(-1), way_of(way), group=group)
    return _made(result.narrow(dim, 0, mine.shape[dim]).contiguous(), mine)


def exchanged(
    parts: Sequence[Tensor], shapes: Sequence[Sequence[int]], mesh: DeviceMesh, mesh_dim: int
) -> List[Tensor]:
    """Send the i-th part to the i-th process; returns what the processes send to this one, of these
    shapes."""
    _say("all_to_all_single")
    sent = [_sent(part).reshape(-1) for part in parts]
    results = [sent[0].new_empty(tuple(shape)) for shape in shapes]
    got = sent[0].new_empty(sum(result.numel() for result in results))
    counts = [result.numel() for result in results]
    dist.all_to_all_single(
        got, _C.cat(sent), counts, [part.numel() for part in sent], group=mesh.get_group(mesh_dim)
    )
    found = zip(got.split(counts), results)
    return [_made(piece.reshape(result.shape), parts[0]) for piece, result in found]


def mesh_broadcast(
    tensor: Tensor, mesh: DeviceMesh, mesh_dim: int = 0, *, group_src: int = 0
) -> Tensor:
    """The tensor of the process at place `group_src` of a dimension of the mesh."""
    _say("broadcast")
    result = tensor.detach().contiguous()
    if result.data_ptr() == tensor.data_ptr():
        result = result.clone()
    if result.numel():
        dist.broadcast(result, group=mesh.get_group(mesh_dim), group_src=group_src)
    return result


def mesh_scatter(
    parts: Sequence[Tensor], mesh: DeviceMesh, mesh_dim: int = 0, *, group_src: int = 0
) -> Tensor:
    """This process's one of the tensors that the process at place `group_src` has. The processes
    have tensors of the same shapes."""
    _say("scatter")
    group = mesh.get_group(mesh_dim)
    place = mesh.get_local_rank(mesh_dim)
    count = max(part.numel() for part in parts)
    result = parts[place].new_empty(count)
    sent: Optional[List[Tensor]] = None
    if place == group_src:
        sent = [padded(part.detach().reshape(-1), 0, count) for part in parts]
    if count:
        dist.scatter(result, sent, group=group, group_src=group_src)
    mine = parts[place]
    return result[: mine.numel()].reshape(mine.shape)


def gathered_objects(value: Any, mesh: DeviceMesh, mesh_dim: int) -> List[Any]:
    """The objects of all processes."""
    found: List[Any] = [None] * mesh.size(mesh_dim)
    with no_grad():
        dist.all_gather_object(found, value, group=mesh.get_group(mesh_dim))
    return found


__all__ = ["mesh_broadcast", "mesh_scatter"]
