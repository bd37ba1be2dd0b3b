"""Which box of a tensor this process has, where it is a DTensor.

Dimensions of the mesh split the tensor one after the other. `_StridedShard` splits last, because it
stands for a split (FullyShardedDataParallel's) of what other dimensions had split before.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from typing import Any, Optional

from treadle import _C
from treadle._C import Tensor
from treadle.distributed.checkpoint.metadata import ChunkStorageMetadata
from treadle.distributed.tensor.placement_types import Partial, Shard, _StridedShard


def is_spread(value: Any) -> bool:
    """Whether a value is a DTensor."""
    # Where the module was never imported, nothing is one.
    module = sys.modules.get("treadle.distributed.tensor")
    kind = getattr(module, "DTensor", None)
    return kind is not None and isinstance(value, kind)


def local_part(tensor: Any) -> Tensor:
    """What this process has of a DTensor, without its gradient."""
    return tensor.detach().to_local()


def local_box(tensor: Any) -> Optional[ChunkStorageMetadata]:
    """The box that this process has of a DTensor; None in a process outside of its mesh."""
    mesh = tensor.device_mesh
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return None
    offsets, sizes = [0] * tensor.dim(), list(tensor.shape)
    splits = []
    for axis, placement in enumerate(tensor.placements):
        if isinstance(placement, Partial):
            raise ValueError(
                "save: expected a tensor that is sharded or replicated, got one with the placement "
                f"{placement}; redistribute it first"
            )
        if isinstance(placement, _StridedShard):
            splits.append((1, axis, placement.dim))
        elif isinstance(placement, Shard):
            splits.append((0, axis, placement.dim))
    for _, axis, dim in sorted(splits):
        each = -(-sizes[dim] // mesh.size(axis))
        begin = min(each * coordinate[axis], sizes[dim])
        offsets[dim] += begin
        sizes[dim] = min(each, sizes[dim] - begin)
    return ChunkStorageMetadata(_C.Size(offsets), _C.Size(sizes))
