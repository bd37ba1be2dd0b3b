"""The box that this process has of a DTensor."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from typing import Any

from treadle import _C
from treadle._C import Tensor
from treadle.distributed.checkpoint.metadata import ChunkStorageMetadata


def is_spread(value: Any) -> bool:
    """Whether a value is a DTensor."""
    # Where the module was never imported, nothing is one.
    module = sys.modules.get("treadle.distributed.tensor")
    kind = vars(module).get("DTensor") if module else None
    return kind is not None and isinstance(value, kind)


def local_part(tensor: Any) -> Tensor:
    """The part of a DTensor in this process, without its gradient."""
    return tensor.detach().to_local()


def is_here(tensor: Any) -> bool:
    """Whether this process is in the mesh of a DTensor."""
    return tensor.device_mesh.get_coordinate() is not None


def local_box(tensor: Any) -> ChunkStorageMetadata:
    """The box that this process has of a DTensor. ValueError for one that is a part of a sum, or
    cut so that this process has several boxes."""
    from treadle.distributed.tensor import _layout

    mesh, placements = tensor.device_mesh, tensor.placements
    for placement in placements:
        if placement.is_partial():
            raise ValueError(
                "save: expected a tensor that is sharded or replicated, got one with the placement "
                f"{placement}; redistribute it first"
            )
    offsets, sizes = [], []
    for dim, length in enumerate(tensor.shape):
        ranges = _layout.ranges_of(dim, length, placements, mesh.shape, mesh.get_coordinate())
        # Ranges that touch are one.
        if any(one[1] != other[0] for one, other in zip(ranges, ranges[1:])):
            raise ValueError(
                f"save: expected one box of dimension {dim} in a process, got {ranges[:4]}, for "
                f"the placements {list(placements)}"
            )
        offsets.append(ranges[0][0] if ranges else length)
        sizes.append(_layout.total(ranges))
    return ChunkStorageMetadata(_C.Size(offsets), _C.Size(sizes))
