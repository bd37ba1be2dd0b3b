"""Bring a tensor from some placements to others, with as little communication as each step needs.

    Shard -> Replicate    all_gather
    Shard -> Shard        all_to_all
    Partial -> Replicate  all_reduce
    Partial -> Shard      reduce_scatter
    Replicate -> Shard    each process takes its piece
    Replicate -> Partial  each process takes its share of the sum; of integers and of products the
                          first process keeps the values, and the others take the neutral value
    Shard -> Partial      each process puts its piece between neutral values

Where several dimensions of the mesh cut one dimension of the tensor, the later ones cut the pieces
of the earlier ones. So pieces are gathered from the last dimension of the mesh to the first one,
and cut from the first one to the last one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor import _collective_utils as comm
from treadle.distributed.tensor import _layout
from treadle.distributed.tensor._dtensor_spec import DTensorSpec
from treadle.distributed.tensor._layout import Ranges
from treadle.distributed.tensor._utils import identity_of
from treadle.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _is_shard_like,
    _StridedShard,
)

Step = Tuple[int, Placement]  # the dimension of the mesh, its new placement


def _dim_of(placement: Placement) -> Optional[int]:
    return placement.dim if isinstance(placement, (Shard, _StridedShard)) else None


def steps(source: Sequence[Placement], target: Sequence[Placement]) -> List[Step]:
    """The changes, of one dimension of the mesh each, from `source` to `target`."""
    now, found = list(source), []

    def changing(before: int) -> set:
        """The dimensions of the tensor that an earlier dimension of the mesh will cut in another
        way."""
        dims = set()
        for j in range(before):
            if source[j] != target[j]:
                dims |= {_dim_of(source[j]), _dim_of(target[j])}
        return dims - {None}

    def change(i: int, placement: Placement) -> None:
        if now[i] != placement:
            now[i] = placement
            found.append((i, placement))

    for i in reversed(range(len(now))):
        dim, wanted = _dim_of(now[i]), _dim_of(target[i])
        moved = changing(i)
        if dim is None or (now[i] == target[i] and dim not in moved):
            continue
        later = {_dim_of(p) for p in now[i + 1 :]}
        at_once = type(now[i]) is Shard and isinstance(target[i], (Shard, Partial))
        is_free = not ({dim, wanted} - {None}) & (moved | later)
        change(i, target[i] if at_once and is_free else Replicate())
    for i in range(len(now)):
        change(i, target[i])
    return found


class _At:
    """One dimension of the mesh, for a tensor of which the other dimensions keep their places."""

    def __init__(self, spec: DTensorSpec, placements: Sequence[Placement], mesh_dim: int) -> None:
        self.mesh: DeviceMesh = spec.mesh
        self.mesh_dim = mesh_dim
        self.count = spec.mesh.size(mesh_dim)
        coordinate = spec.mesh.get_coordinate()
        assert coordinate is not None
        self.place = coordinate[mesh_dim]
        self._spec, self._placements, self._coordinate = spec, placements, coordinate

    def length(self, dim: int) -> int:
        """The length of a dimension of the tensor before this dimension of the mesh cuts it."""
        n = self.mesh_dim
        outer = self._placements[:n], self.mesh.shape[:n], self._coordinate[:n]
        return _layout.total(_layout.ranges_of(dim, self._spec.shape[dim], *outer))

    def pieces(self, placement: Placement, dim: int) -> List[Ranges]:
        return _layout.pieces(placement, self.length(dim), self.count)


def _taken(tensor: Tensor, dim: int, ranges: Ranges) -> Tensor:
    """The elements at these positions of a dimension, a new tensor."""
    parts = [tensor.narrow(dim, start, end - start) for start, end in ranges]
    if not parts:
        return tensor.narrow(dim, 0, 0).clone()
    return _C.cat(parts, dim) if len(parts) > 1 else parts[0].clone().contiguous()


def _gathered(tensor: Tensor, at: _At, placement: Placement) -> Tensor:
    dim = _dim_of(placement)
    assert dim is not None
    all_ranges = at.pieces(placement, dim)
    lengths = [_layout.total(ranges) for ranges in all_ranges]
    parts = comm.gathered_pieces(tensor, dim, lengths, at.mesh, at.mesh_dim)
    if isinstance(placement, _StridedShard):
        runs = []
        for part, ranges in zip(parts, all_ranges):
            begin = 0
            for start, end in ranges:
                runs.append((start, part.narrow(dim, begin, end - start)))
                begin += end - start
        runs.sort(key=lambda run: run[0])
        parts = [run for _, run in runs] or parts
    return _C.cat(parts, dim)


def _between(tensor: Tensor, at: _At, source: Placement, value: float) -> Tensor:
    """The piece in its place in a tensor of the whole length that else has one value."""
    dim = _dim_of(source)
    assert dim is not None
    shape = list(tensor.shape)
    shape[dim] = at.length(dim)
    result = tensor.new_full(shape, value)
    begin = 0
    for start, end in at.pieces(source, dim)[at.place]:
        size = end - start
        result.narrow(dim, start, size).copy_(tensor.narrow(dim, begin, size))
        begin += size
    return result


def _change(tensor: Tensor, at: _At, source: Placement, target: Placement) -> Tensor:
    """The tensor after a change of one dimension of the mesh."""
    if isinstance(target, (Shard, _StridedShard)):
        dim = target.dim
        ranges = at.pieces(target, dim)
        if isinstance(source, Replicate):
            return _taken(tensor, dim, ranges[at.place])
        if isinstance(source, Partial):
            parts = [_taken(tensor, dim, each) for each in ranges]
            return comm.reduce_scattered(parts, dim, source.reduce_op, at.mesh, at.mesh_dim)
        assert isinstance(source, Shard)
        parts = [_taken(tensor, dim, each) for each in ranges]
        shapes = []
        for each in at.pieces(source, source.dim):
            shape = list(parts[at.place].shape)
            shape[source.dim] = _layout.total(each)
            shapes.append(shape)
        found = comm.exchanged(parts, shapes, at.mesh, at.mesh_dim)
        return _C.cat(found, source.dim)
    if isinstance(target, Replicate):
        if isinstance(source, Partial):
            return comm.all_reduced(tensor, source.reduce_op, at.mesh, at.mesh_dim)
        return _gathered(tensor, at, source)
    assert isinstance(target, Partial)
    value = identity_of(target.reduce_op, tensor.dtype)
    if _is_shard_like(source):
        return _between(tensor, at, source, value)
    if isinstance(source, Partial):
        tensor = comm.all_reduced(tensor, source.reduce_op, at.mesh, at.mesh_dim)
    if target.reduce_op == "sum" and (tensor.is_floating_point() or tensor.is_complex()):
        return tensor / at.count
    if target.reduce_op not in ("sum", "product") or at.place == 0:
        return tensor.clone()
    return tensor.new_full(tensor.shape, value)


def redistribute_local_tensor(
    local_tensor: Tensor, current_spec: DTensorSpec, target_spec: DTensorSpec
) -> Tensor:
    """What this process has of a tensor with the placements of `target_spec`, from what it has with
    those of `current_spec`; without gradient. All processes of the mesh call it together."""
    if current_spec.mesh != target_spec.mesh:
        raise NotImplementedError(
            f"redistribute: expected placements on the same mesh, {current_spec.mesh}, got "
            f"{target_spec.mesh}"
        )
    if current_spec.placements == target_spec.placements:
        return local_tensor
    if not current_spec.mesh._is_current_rank_part_of_mesh():
        return local_tensor
    now = list(current_spec.placements)
    tensor = local_tensor.detach()
    for mesh_dim, placement in steps(now, target_spec.placements):
        at = _At(current_spec, now, mesh_dim)
        tensor = _change(tensor, at, now[mesh_dim], placement)
        now[mesh_dim] = placement
    return tensor


__all__ = ["redistribute_local_tensor"]
