"""Shapes and offsets of what a process has of a tensor that is spread."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Sequence, Tuple

from treadle import _C
from treadle._C import Size, Tensor
from treadle._tensor.type_info import iinfo
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor import _layout
from treadle.distributed.tensor._collective_utils import gathered_objects
from treadle.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int],
    mesh: DeviceMesh,
    placements: Sequence[Placement],
    skip_offset: bool = False,
) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """The sizes of what this process has, and the index of its first element in the whole tensor.

    Args:
        global_shape: the sizes of the whole tensor.
        mesh: the mesh.
        placements: a placement for each dimension of the mesh.
        skip_offset: whether the index is not wanted: () is returned for it.

    A process that has nothing of a dimension has its size for an index; one outside of the mesh has
    the shape (0,) and the index ().
    """
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return (0,), ()
    return shape_and_offset_at(global_shape, mesh.shape, coordinate, placements, skip_offset)


def shape_and_offset_at(
    global_shape: Sequence[int],
    mesh_shape: Sequence[int],
    coordinate: Sequence[int],
    placements: Sequence[Placement],
    skip_offset: bool = False,
) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
    """The same, of the process at a place of a mesh of this shape."""
    shape, offset = [], []
    for dim, length in enumerate(global_shape):
        ranges = _layout.ranges_of(dim, length, placements, mesh_shape, coordinate)
        shape.append(_layout.total(ranges))
        is_cut = bool(_layout.mesh_dims_of(dim, placements))
        offset.append(ranges[0][0] if ranges else length if is_cut else 0)
    return tuple(shape), () if skip_offset else tuple(offset)


_compute_local_shape_and_global_offset = shape_and_offset_at


def contiguous_stride(shape: Sequence[int]) -> Tuple[int, ...]:
    """The strides of a contiguous tensor."""
    strides, step = [], 1
    for size in reversed(tuple(shape)):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def compute_local_stride(
    global_stride: Sequence[int], local_shape: Sequence[int]
) -> Tuple[int, ...]:
    """The strides of a dense tensor of this shape whose dimensions are in memory in the same order
    as those of the whole tensor."""
    strides, step = [0] * len(global_stride), 1
    order = sorted(range(len(global_stride)), key=lambda d: global_stride[d], reverse=True)
    for dim in reversed(order):
        strides[dim] = step
        step *= local_shape[dim]
    return tuple(strides)


def compute_global_tensor_info(
    tensor: Tensor, mesh: DeviceMesh, placements: Sequence[Placement]
) -> Tuple[List[int], List[int]]:
    """The sizes and strides of the whole tensor, if every process has as much as this one."""
    shape, stride = list(tensor.shape), list(tensor.stride())
    for i, placement in enumerate(placements):
        if isinstance(placement, (Shard, _StridedShard)):
            dim = placement.dim
            if not 0 <= dim < len(shape):
                raise ValueError(
                    f"from_local: expected a dimension of a tensor of {len(shape)} dimensions, "
                    f"got {placement!r}"
                )
            for other in range(len(stride)):
                if other != dim and stride[other] >= stride[dim]:
                    stride[other] *= mesh.size(i)
            shape[dim] *= mesh.size(i)
        elif not isinstance(placement, (Replicate, Partial)):
            raise RuntimeError(f"placement type {type(placement)} not supported!")
    return shape, stride


def compute_global_tensor_shape(
    shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]
) -> Size:
    """The sizes of the whole tensor, where processes may have different numbers of elements: they
    tell each other their sizes. RuntimeError if other sizes than the cut one differ."""
    if len(placements) != mesh.ndim:
        raise RuntimeError(
            "Expected one placement per mesh dim, "
            f"but found {len(placements)} placements and {mesh.ndim} mesh dims."
        )
    found = list(shape)
    for i in reversed(range(mesh.ndim)):
        placement = placements[i]
        if not isinstance(placement, (Shard, _StridedShard)):
            continue
        dim = placement.dim
        shapes = gathered_objects(tuple(found), mesh, i)
        others = {each[:dim] + each[dim + 1 :] for each in shapes}
        if len(others) > 1:
            raise RuntimeError("Non-sharded dimensions should have identical size across ranks.")
        found[dim] = sum(each[dim] for each in shapes)
    return Size(found)


def normalize_to_torch_size(size: Any) -> Size:
    """The sizes, from an int, a sequence, or a tuple of one sequence."""
    if isinstance(size, int):
        return Size([size])
    if len(size) == 1 and isinstance(size[0], (list, tuple)):
        return Size(size[0])
    return Size(size)


def normalized(
    function: str, placements: Any, ndim: int, mesh: DeviceMesh
) -> Tuple[Placement, ...]:
    """The placements, by default Replicate, with dimensions >= 0. ValueError if there is not one
    for each dimension of the mesh, or if parts are to be reduced in different ways."""
    if placements is None:
        return (Replicate(),) * mesh.ndim
    found: List[Placement] = []
    for placement in placements:
        if isinstance(placement, (Shard, _StridedShard)):
            if not -ndim <= placement.dim < ndim:
                raise ValueError(
                    f"{function}: expected a dimension of a tensor of {ndim} dimensions, "
                    f"got {placement!r}"
                )
            if placement.dim < 0 and isinstance(placement, Shard):
                placement = Shard(placement.dim + ndim)
            elif placement.dim < 0:
                factor = placement.split_factor  # type: ignore[union-attr]
                placement = _StridedShard(placement.dim + ndim, split_factor=factor)
        elif not isinstance(placement, (Replicate, Partial)):
            raise TypeError(f"{function}: expected a Placement, got {type(placement).__name__}")
        found.append(placement)
    if len(found) != mesh.ndim:
        raise ValueError(
            f"{function}: expected a placement for each of the {mesh.ndim} dimensions of the mesh, "
            f"got {len(found)}"
        )
    ways = {p.reduce_op for p in found if isinstance(p, Partial)}
    if len(ways) > 1 and not ways <= {"sum", "avg"}:  # these two may change places
        raise ValueError(
            f"{function}: expected parts that are reduced in one way, got {sorted(ways)}"
        )
    return tuple(found)


def identity_of(way: str, dtype: Any) -> Any:
    """The value that changes nothing where values are reduced."""
    if way in ("max", "min"):
        if dtype == _C.bool:
            return way == "min"
        if dtype.is_floating_point:
            return float("-inf") if way == "max" else float("inf")
        info = iinfo(dtype)
        return info.min if way == "max" else info.max
    return 1 if way == "product" else 0


__all__ = [
    "compute_global_tensor_info",
    "compute_global_tensor_shape",
    "compute_local_shape_and_global_offset",
    "compute_local_stride",
    "normalize_to_torch_size",
]
