"""One parameter of a module whose parameters are sharded.

Most of the time the module has `sharded`: a DTensor with this process's rows. During forward and
backward it has `unsharded`: the whole parameter, over memory that is there only as long. The graph
keeps tensors over that memory; backward finds the same elements there again.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Callable, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor import DTensor
from treadle.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from treadle.distributed.tensor._utils import contiguous_stride
from treadle.distributed.tensor.placement_types import (
    Placement,
    Replicate,
    Shard,
    _StridedShard,
)
from treadle.nn import Module, Parameter

Place = Tuple[Module, str]


class MeshDims:
    """The dimension of a mesh that shards, and the one that has copies, if there is one."""

    def __init__(self, mesh: DeviceMesh) -> None:
        if mesh.ndim not in (1, 2):
            raise ValueError(f"fully_shard: expected a mesh of 1 or 2 dimensions, got {mesh.ndim}")
        if mesh.ndim == 2 and mesh.mesh_dim_names is None:
            raise ValueError(
                "fully_shard: expected a mesh of 2 dimensions with mesh_dim_names, got none"
            )
        self.mesh = mesh
        self.shard_dim = mesh.ndim - 1
        self.size = mesh.size(self.shard_dim)
        self.rank = mesh.get_local_rank(self.shard_dim)
        self.group = mesh.get_group(self.shard_dim)
        self.copies = mesh.get_group(0) if mesh.ndim == 2 else None

    def placements(self, shard: Placement) -> List[Placement]:
        """The placements of a tensor on the mesh, of the one on the dimension that shards."""
        return [shard] if self.copies is None else [Replicate(), shard]


def _common_mesh(ours: DeviceMesh, other: DeviceMesh) -> DeviceMesh:
    """The mesh with the dimensions of both, as the mesh that both are parts of has them."""
    root = ours._get_root_mesh()
    if root != other._get_root_mesh() or ours.mesh_dim_names is None:
        raise ValueError(
            "fully_shard: expected parts of one mesh with mesh_dim_names for the parameters that "
            f"are DTensors and for the module, got {other} and {ours}"
        )
    return root[(*ours.mesh_dim_names, *(other.mesh_dim_names or ()))]


class ShardedParameter:
    """A parameter, and the places in modules that have it. `used_dtype` is that of `unsharded`."""

    def __init__(
        self,
        parameter: Any,
        places: Sequence[Place],
        dims: MeshDims,
        placement: Optional[Shard],
        used_dtype: Optional[_C.dtype],
    ) -> None:
        self.places = list(places)
        self.dims = dims
        self.shard = placement or Shard(0)
        self.inner: Optional[DTensorSpec] = None  # of a parameter that is a DTensor already
        whole = parameter.detach()
        if isinstance(parameter, DTensor):
            self.inner = parameter._spec
            whole = parameter._local_tensor.detach()
        self.shape = tuple(whole.shape)
        if not 0 <= self.shard.dim < max(whole.dim(), 1):
            raise ValueError(
                f"fully_shard: expected a dimension of a parameter of shape {self.shape} to shard, "
                f"got {self.shard.dim}"
            )
        if whole.dim() == 0:
            raise ValueError(
                "fully_shard: expected parameters with dimensions, got one without; give it the "
                f"shape (1,), or to ignored_params: {self.places[0][1]!r}"
            )
        self.used_dtype = used_dtype or whole.dtype
        self.spec = self._spec(parameter)
        local = _C.narrow(whole, self.shard.dim, self._begin(), self._count()).contiguous()
        if local.numel() == whole.numel() or local.untyped_storage().nbytes() != (
            local.numel() * local.element_size()
        ):
            local = local.clone()
        self.sharded: Any = Parameter(
            DTensor(local, self.spec), requires_grad=parameter.requires_grad
        )
        for name, value in vars(parameter).items():
            if not name.startswith("_"):
                setattr(self.sharded, name, value)
        self.unsharded: Any = None
        self.is_unsharded = False
        self.is_summoned = False  # the module has it whole, outside of forward and backward
        self.accumulated: Optional[Tensor] = None  # gradients that were not reduced
        self._memory: Any = None
        self.give(self.sharded)

    # ---- shapes ----

    def _each(self) -> int:
        """The rows of a process, but for the last ones."""
        return -(-self.shape[self.shard.dim] // self.dims.size)

    def _begin(self) -> int:
        return min(self._each() * self.dims.rank, self.shape[self.shard.dim])

    def _count(self) -> int:
        return min(self._each(), self.shape[self.shard.dim] - self._begin())

    @property
    def padded(self) -> int:
        """The elements that each process sends: as many as the one with most has."""
        rest = math.prod(self.shape[: self.shard.dim] + self.shape[self.shard.dim + 1 :])
        return self._each() * rest

    def _padded_shape(self) -> Tuple[int, ...]:
        dim = self.shard.dim
        return (*self.shape[:dim], self._each(), *self.shape[dim + 1 :])

    def _spec(self, parameter: Any) -> DTensorSpec:
        shape = parameter.shape
        meta = TensorMeta(shape, contiguous_stride(shape), parameter.dtype)
        if self.inner is None:
            return DTensorSpec(self.dims.mesh, tuple(self.dims.placements(self.shard)), meta)
        mesh = _common_mesh(self.dims.mesh, self.inner.mesh)
        cuts = 1
        for axis, placement in enumerate(self.inner.placements):
            if placement.is_shard(self.shard.dim):
                cuts *= self.inner.mesh.size(axis)
        dim = self.shard.dim
        shard = Shard(dim) if cuts == 1 else _StridedShard(dim, split_factor=cuts)
        return DTensorSpec(mesh, (*self.dims.placements(shard), *self.inner.placements), meta)

    # ---- parameters of the module ----

    def give(self, parameter: Any) -> None:
        """Put a parameter, or None, where the module has this one."""
        for module, name in self.places:
            module._parameters[name] = parameter

    def take_from_module(self) -> None:
        """Take the parameter that the module has by now: to_empty() and others replace it."""
        module, name = self.places[0]
        found = module._parameters[name]
        if found is self.sharded or found is self.unsharded:
            return
        if not isinstance(found, DTensor) or tuple(found.shape) != tuple(self.sharded.shape):
            raise RuntimeError(
                f"fully_shard: expected the sharded parameter {name!r} of {type(module).__name__}, "
                f"got another one ({type(found).__name__} of shape {tuple(found.shape)})"
            )
        self.sharded = found
        self.give(found)

    def hide(self) -> None:
        """Leave the module without the parameter, until convert()."""
        self.give(None)

    def convert(self, fn: Callable[[Tensor], Tensor]) -> None:
        """Replace this process's rows, and those of the gradient, by `fn` of them."""
        with no_grad():
            for tensor in (self.sharded, self.sharded.grad):
                if tensor is not None:
                    local = fn(tensor._local_tensor)
                    tensor.data = DTensor(local, self.spec_of(local.dtype))
                    tensor._local_tensor, tensor._spec = local, self.spec_of(local.dtype)
        if self.used_dtype == self.spec.tensor_meta.dtype:  # type: ignore[union-attr]
            self.used_dtype, self.unsharded = self.sharded.dtype, None
            self._memory = None
        self.spec = self.sharded._spec
        self.give(self.sharded)

    def whole(self) -> Tensor:
        """The elements of the whole parameter, which is there."""
        return self._memory

    def local(self) -> Tensor:
        """This process's rows."""
        return self.sharded._local_tensor.detach()

    # ---- from rows to the whole and back ----

    def write_rows(self, place: Tensor) -> None:
        """Write this process's rows to a flat tensor of `padded` elements."""
        local = self.local()
        if local.device.type == "meta":
            raise RuntimeError(
                f"forward: expected parameters with memory, got {self.places[0][1]!r} on the "
                "device meta; call to_empty() and initialise them first"
            )
        if local.numel():
            place.view(self._padded_shape()).narrow(self.shard.dim, 0, self._count()).copy_(local)

    def fill(self, rows: Sequence[Tensor]) -> None:
        """Make the whole parameter of the flat rows of all processes."""
        memory, nbytes = self._memory, math.prod(self.shape) * self.used_dtype.itemsize
        if memory is None:
            self._make(nbytes)
            memory = self._memory
        memory.untyped_storage().resize_(nbytes)
        dim, each, begin = self.shard.dim, self._each(), 0
        shape = self._padded_shape()
        for part in rows:
            count = min(each, self.shape[dim] - begin)
            if count <= 0:
                break
            memory.narrow(dim, begin, count).copy_(part.view(shape).narrow(dim, 0, count))
            begin += count

    def _make(self, nbytes: int) -> None:
        """The whole parameter, once: the graph refers to it. It is written through `_memory`, whose
        versions are counted apart, as the elements are the same whenever it is filled."""
        whole = _C.empty(self.shape, dtype=self.used_dtype)
        self._memory = whole.data
        value: Any = whole
        if self.inner is not None:
            meta = TensorMeta(
                self.inner.shape, contiguous_stride(self.inner.shape), self.used_dtype
            )
            value = DTensor(whole, DTensorSpec(self.inner.mesh, self.inner.placements, meta))
        self.unsharded = Parameter(value, requires_grad=self.sharded.requires_grad)
        for name, kept in vars(self.sharded).items():
            if not name.startswith("_"):
                setattr(self.unsharded, name, kept)

    def to_unsharded(self) -> None:
        """Give the whole parameter to the module."""
        if self.unsharded.requires_grad != self.sharded.requires_grad:
            self.unsharded.requires_grad_(self.sharded.requires_grad)
        self.give(self.unsharded)
        self.is_unsharded = True

    def to_sharded(self, free: bool = True) -> None:
        """Give the module this process's rows, and free the memory of the whole parameter."""
        self.give(self.sharded)
        self.is_unsharded = False
        if free and self._memory is not None:
            self._memory.untyped_storage().resize_(0)

    # ---- gradients ----

    def take_gradient(self) -> Optional[Tensor]:
        """The gradient of the whole parameter, without that it stays there; with what was
        accumulated before."""
        found = None if self.unsharded is None else self.unsharded.grad
        if found is not None:
            self.unsharded.grad = None
            found = found.detach()
            if isinstance(found, DTensor):
                assert self.inner is not None
                if found.placements != self.inner.placements:
                    found = found.redistribute(placements=self.inner.placements)
                found = found._local_tensor
        before, self.accumulated = self.accumulated, None
        if before is None or found is None:
            return before if found is None else found
        return before + found.to(before.dtype)

    def keep_gradient(self, dtype: _C.dtype) -> None:
        """Keep the gradient for a later reduction."""
        gradient = self.take_gradient()
        if gradient is not None:
            self.accumulated = gradient.to(dtype)

    def split(self, tensor: Tensor, places: Sequence[Tensor], first: int = 0) -> None:
        """Write the rows of a whole tensor, those of each process from `first` on, to their flat
        tensors of `padded` elements."""
        dim, each = self.shard.dim, self._each()
        begin = each * first
        for place in places:
            count = max(min(each, self.shape[dim] - begin), 0)
            target = place.view(self._padded_shape())
            if count:
                target.narrow(dim, 0, count).copy_(tensor.narrow(dim, begin, count))
            if count < each:
                target.narrow(dim, count, each - count).zero_()
            begin += count

    def add_gradient(self, rows: Tensor) -> None:
        """Add this process's rows of the reduced gradient, a flat tensor of `padded` elements."""
        with no_grad():
            shape = self._padded_shape()
            rows = rows.view(shape).narrow(self.shard.dim, 0, self._count())
            local = rows.to(self.sharded.dtype).clone()
            if self.sharded.grad is None:
                self.sharded.grad = DTensor(local, self.spec_of(self.sharded.dtype))
            else:
                self.sharded.grad._local_tensor.add_(local)

    def spec_of(self, dtype: _C.dtype) -> DTensorSpec:
        """How the sharded parameter is spread, with a dtype."""
        return self.spec.shallow_copy_with_tensor_meta(
            TensorMeta(self.spec.shape, self.spec.stride, dtype)
        )


__all__ = ["MeshDims", "Place", "ShardedParameter"]
