"""How a tensor is spread: over which mesh, with which placements, of what shape it is in all."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from typing import Any, List, NamedTuple, Optional, Tuple

from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor import _layout
from treadle.distributed.tensor.placement_types import Placement, _is_shard_like


class TensorMeta(NamedTuple):
    """The geometry of the whole tensor, as if it were in one process."""

    shape: Any  # Size
    stride: Tuple[int, ...]
    dtype: Any


class ShardOrderEntry(NamedTuple):
    """The dimensions of the mesh that cut a dimension, in the order in which they cut."""

    tensor_dim: int
    mesh_dims: Tuple[int, ...]


@dataclasses.dataclass(unsafe_hash=True)
class DTensorSpec:
    """The mesh, a placement for each of its dimensions, and the geometry of the whole tensor."""

    mesh: DeviceMesh
    placements: Tuple[Placement, ...]
    tensor_meta: Optional[TensorMeta] = None

    def __post_init__(self) -> None:
        self.placements = tuple(self.placements)

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self.mesh

    def _meta(self) -> TensorMeta:
        if self.tensor_meta is None:
            raise ValueError("tensor_meta is not set")
        return self.tensor_meta

    @property
    def shape(self) -> Any:
        """The sizes of the whole tensor."""
        return self._meta().shape

    @property
    def stride(self) -> Tuple[int, ...]:
        """The strides of the whole tensor."""
        return self._meta().stride

    @property
    def ndim(self) -> int:
        """The number of dimensions of the tensor."""
        return len(self._meta().shape)

    @property
    def shard_order(self) -> Tuple[ShardOrderEntry, ...]:
        """For each dimension that is cut, which dimensions of the mesh do it, in order."""
        dims = [(d, _layout.mesh_dims_of(d, self.placements)) for d in range(self.ndim)]
        return tuple(ShardOrderEntry(d, tuple(by)) for d, by in dims if by)

    @property
    def num_shards(self) -> int:
        """How many different pieces there are."""
        count = 1
        for placement, size in zip(self.placements, self.mesh.shape):
            count *= size if _is_shard_like(placement) else 1
        return count

    @property
    def num_shards_map(self) -> List[int]:
        """For each dimension, the number of pieces that it is cut into."""
        counts = [1] * self.ndim
        for placement, size in zip(self.placements, self.mesh.shape):
            if _is_shard_like(placement):
                counts[placement.dim] *= size  # type: ignore[attr-defined]
        return counts

    @property
    def dim_map(self) -> List[int]:
        """For each dimension, the dimension of the mesh that cuts it, or -1. ValueError if there
        are two."""
        found = []
        for dim in range(self.ndim):
            by = _layout.mesh_dims_of(dim, self.placements)
            if len(by) > 1:
                raise ValueError(
                    f"dim_map: expected one dimension of the mesh that cuts dimension {dim}, "
                    f"got {by}"
                )
            found.append(by[0] if by else -1)
        return found

    @property
    def sums(self) -> List[int]:
        """The dimensions of the mesh with parts that are still to be reduced."""
        return [i for i, placement in enumerate(self.placements) if placement.is_partial()]

    def is_replicated(self) -> bool:
        """Whether each process has all."""
        return all(placement.is_replicate() for placement in self.placements)

    def is_sharded(self) -> bool:
        """Whether a dimension is cut."""
        return any(_is_shard_like(placement) for placement in self.placements)

    def local_shape(self) -> Tuple[int, ...]:
        """The sizes of what this process has."""
        mesh = self.mesh
        return _layout.local_shape(self.shape, self.placements, mesh.shape, mesh.get_coordinate())

    def with_placements(self, placements: Any) -> DTensorSpec:
        """The same tensor, spread in another way."""
        return DTensorSpec(self.mesh, tuple(placements), self.tensor_meta)

    def shallow_copy_with_tensor_meta(self, tensor_meta: Optional[TensorMeta]) -> DTensorSpec:
        """The same way to spread another tensor."""
        return DTensorSpec(self.mesh, self.placements, tensor_meta)

    def __str__(self) -> str:
        text = "".join(str(placement) for placement in self.placements)
        if self.tensor_meta is None:
            return f"Spec(unknown dtypeunknown shape({text}))"
        return f"Spec({self.tensor_meta.dtype.abbr}{list(self.shape)}({text}))"


__all__ = ["DTensorSpec", "ShardOrderEntry", "TensorMeta"]
