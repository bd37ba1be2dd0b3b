"""DTensor: a tensor that is spread over the processes of a mesh, and used as if it were in one.

    mesh = init_device_mesh("cpu", (2,))
    weight = distribute_tensor(treadle.randn(4, 3), mesh, [Shard(0)])   # each has two rows
    (weight * 2).sum().full_tensor()

The program runs in all processes of the mesh. An operator is computed on what each process has;
where that is not enough, the processes exchange what is missing. `to_local()` and `from_local()`
lead from one world to the other.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from typing import Any, Dict, FrozenSet, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Size, Tensor
from treadle.autograd import Function
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.device_mesh import DeviceMesh, _mesh_resources
from treadle.distributed.tensor import _collective_utils as comm
from treadle.distributed.tensor import _copied_views, _layout
from treadle.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from treadle.distributed.tensor._facts import makers
from treadle.distributed.tensor._redistribute import redistribute_local_tensor
from treadle.distributed.tensor._utils import (
    compute_global_tensor_info,
    contiguous_stride,
    normalized,
)
from treadle.distributed.tensor.placement_types import (
    Partial,
    Placement,
    Replicate,
    _is_shard_like,
)

Placements = Optional[Sequence[Placement]]


def _of_gradient(placements: Tuple[Placement, ...]) -> Tuple[Placement, ...]:
    """Where a gradient is, for a tensor with these placements: the gradient of a part of a sum is
    that of the sum."""
    return tuple(Replicate() if p.is_partial() else p for p in placements)


class _Implicit(threading.local):
    """Whether tensors of this process alone count as replicated beside DTensors: everywhere, or as
    arguments of the functions with these names."""

    replicates = False
    names: FrozenSet[str] = frozenset()


_implicit = _Implicit()


def _refuse_mixed(name: str, values: Sequence[Any]) -> None:
    """RuntimeError for tensors that are no DTensors, except those of one element. The processes may
    have different ones."""
    for value in values:
        if isinstance(value, (list, tuple)):
            _refuse_mixed(name, value)
        elif isinstance(value, Tensor) and not isinstance(value, DTensor) and value.numel() != 1:
            raise RuntimeError(
                f"{name}: expected DTensors alone, got a {type(value).__name__} of the shape "
                f"{tuple(value.shape)} beside a DTensor; distribute_tensor() makes one of it, and "
                "implicit_replication() is for tensors that are the same in all processes"
            )


class DTensor(Tensor):
    """A tensor that is spread over the processes of a mesh.

    `device_mesh` is the mesh, `placements` has a Placement for each of its dimensions. Shape,
    strides and dtype are those of the whole tensor. Made by `distribute_tensor`, by
    `DTensor.from_local`, and by operators.
    """

    _spec: DTensorSpec

    @staticmethod
    def __new__(
        cls: Any,
        local_tensor: Tensor,
        spec: DTensorSpec,
        *,
        requires_grad: bool = False,
        storage_offset: int = 0,
    ) -> DTensor:
        made = Tensor._make_wrapper_subclass(
            cls,
            spec.shape,
            strides=spec.stride,
            storage_offset=storage_offset,
            dtype=local_tensor.dtype,
            device=local_tensor.device,
            requires_grad=requires_grad,
        )
        made._local_tensor = local_tensor.detach() if local_tensor.requires_grad else local_tensor
        made._spec = spec
        return made

    def __repr__(self) -> str:
        return (
            # One process may print alone, so this brings nothing up to date.
            f"DTensor(local_tensor={vars(self)['_local_tensor']}, device_mesh={self._spec.mesh}, "
            f"placements={self._spec.placements})"
        )

    def __format__(self, format_spec: str) -> str:
        """As repr(), or the number of a tensor of one element that all processes have. Nothing is
        sent, as one process may print alone. TypeError for a format of another tensor."""
        if not format_spec:
            return repr(self)
        if self.dim() or not self._spec.is_replicated():
            raise TypeError(
                f"DTensor: expected an empty format, as other processes have parts of the tensor, "
                f"got {format_spec!r}; full_tensor(), called in all processes, has the numbers"
            )
        return format(vars(self)["_local_tensor"].item(), format_spec)

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Tuple = (), kwargs: Optional[Dict] = None
    ) -> Any:
        from treadle.distributed.tensor import _dispatch

        with _C.DisableTorchFunctionSubclass():
            return _dispatch.run(func, args, kwargs or {})

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Tuple = (), kwargs: Optional[Dict] = None
    ) -> Any:
        """Functions of the program: tensors of this process alone are refused beside DTensors."""
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        # Operators of lists take the tensors of each place together, and no others.
        is_free = name in ("__get__", "__set__") or name.startswith(("_foreach_", "_fused_"))
        is_free = is_free or name in _implicit.names
        if not _implicit.replicates and not is_free:
            _refuse_mixed(name, [*args, *kwargs.values()])
        with _C.DisableTorchFunctionSubclass():
            if name in makers():
                with no_grad():  # a layer sees the operator whole where nothing is recorded
                    return func(*args, **kwargs)
            return func(*args, **kwargs)

    def __tensor_flatten__(self) -> Tuple[List[str], Any]:
        return ["_local_tensor"], (self._spec, self.requires_grad)

    @staticmethod
    def __tensor_unflatten__(inner: Dict[str, Tensor], context: Any, size: Any, stride: Any) -> Any:
        spec, requires_grad = context
        meta = TensorMeta(size, stride, spec.tensor_meta.dtype)
        spec = DTensorSpec(spec.mesh, spec.placements, meta)
        return DTensor(inner["_local_tensor"], spec, requires_grad=requires_grad)

    # ---- what it is ----

    @property
    def _local_tensor(self) -> Tensor:
        """The part of this process."""
        _copied_views.bring_up_to_date(self)
        return vars(self)["_local_tensor"]

    @_local_tensor.setter
    def _local_tensor(self, local: Tensor) -> None:
        vars(self)["_local_tensor"] = local

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self._spec.mesh

    @property
    def placements(self) -> Tuple[Placement, ...]:
        """A placement for each dimension of the mesh."""
        return self._spec.placements

    # ---- from one world to the other ----

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: Optional[DeviceMesh] = None,
        placements: Placements = None,
        *,
        run_check: bool = False,
        shape: Optional[Sequence[int]] = None,
        stride: Optional[Sequence[int]] = None,
        grad_placements: Placements = None,
    ) -> DTensor:
        """The tensor of what all processes have; gradients go back to `local_tensor`.

        Args:
            local_tensor: what this process has.
            device_mesh: the mesh; by default the one that the program is in (`with mesh:`).
            placements: a placement for each dimension of the mesh, by default Replicate.
            run_check: whether processes compare shapes and dtypes, and take what is replicated
                from the first of them.
            shape, stride: of the whole tensor; together. By default all processes have as much as
                this one.
            grad_placements: where the gradient is to be before it becomes a tensor of this
                process; by default `placements`, with Replicate for Partial.

        RuntimeError for a DTensor, for a shape without stride, and where processes differ.
        """
        if isinstance(local_tensor, DTensor):
            raise RuntimeError(
                "the local_tensor argument only accepts torch.Tensor but got "
                f"{type(local_tensor)} value."
            )
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"from_local: expected shape and stride together, got shape = {shape} and "
                f"stride = {stride}"
            )
        mesh = device_mesh or _mesh_resources.get_current_mesh()
        if mesh.device_type not in (local_tensor.device.type, "meta") and not local_tensor.is_meta:
            local_tensor = local_tensor.to(mesh.device_type)
        ndim = len(shape) if shape is not None else local_tensor.dim()
        places = normalized("from_local", placements, ndim, mesh)
        wanted = None
        if grad_placements is not None:
            wanted = normalized("from_local", grad_placements, ndim, mesh)
        if run_check and mesh._is_current_rank_part_of_mesh():
            local_tensor = _checked(local_tensor, mesh, places, shape is None)
        if shape is None:
            found_shape, found_stride = compute_global_tensor_info(local_tensor, mesh, places)
        else:
            found_shape, found_stride = list(shape), list(stride or ())
        meta = TensorMeta(Size(found_shape), tuple(found_stride), local_tensor.dtype)
        spec = DTensorSpec(mesh, places, meta)
        return _FromLocal.apply(local_tensor, spec, wanted)

    def to_local(self, *, grad_placements: Placements = None) -> Tensor:
        """The part of this process. Its gradient is that of this process's part; `grad_placements`
        says where gradients will be, by default where the tensor is, with Replicate for Partial."""
        wanted = None
        if grad_placements is not None:
            wanted = normalized("to_local", grad_placements, self.dim(), self._spec.mesh)
        if not _C.is_grad_enabled():
            return self._local_tensor
        return _ToLocal.apply(self, wanted)

    def redistribute(
        self,
        device_mesh: Optional[DeviceMesh] = None,
        placements: Placements = None,
        *,
        async_op: bool = False,
        forward_dtype: Any = None,
        backward_dtype: Any = None,
    ) -> DTensor:
        """The same tensor with other placements on its mesh.

        Args:
            device_mesh: the mesh of the tensor, or None.
            placements: a placement for each dimension of the mesh. Partial must be there already,
                except that Shard may become Partial("sum").
            async_op: whether the communication may go on when this returns. The result is complete
                in either case.
            forward_dtype: the dtype of the result, in which it is sent; by default that of the
                tensor.
            backward_dtype: the dtype in which gradients are sent; by default that of the tensor.

        RuntimeError without placements and for other Partial; NotImplementedError for another mesh.
        """
        mesh = device_mesh or self._spec.mesh
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if mesh != self._spec.mesh:
            raise NotImplementedError(
                f"redistribute: expected the mesh of the tensor, {self._spec.mesh}, got {mesh}"
            )
        places = normalized("redistribute", placements, self.dim(), mesh)
        for source, target in zip(self._spec.placements, places):
            if target.is_partial() and source != target:
                if not (_is_shard_like(source) and target == Partial("sum")):
                    raise RuntimeError(
                        f"Can not redistribute from {source} to {target}, "
                        "only Shard to Partial(sum) redistribution is supported!"
                    )
        return _Redistribute.apply(self, places, forward_dtype, backward_dtype)

    def full_tensor(self, *, grad_placements: Placements = None) -> Tensor:
        """The whole tensor, in each process; gradients go back to this one."""
        whole = self.redistribute(placements=[Replicate()] * self._spec.mesh.ndim)
        return whole.to_local(grad_placements=grad_placements)

    # ---- what checkpoints ask for ----

    def _no_parts(self) -> None:
        if any(placement.is_partial() for placement in self._spec.placements):
            raise ValueError(
                "Any checkpointing related operations are not supported for "
                "DTensor with partial placements!"
            )

    def __create_write_items__(self, fqn: str, object: Any) -> List[Any]:
        """The part of it that a checkpoint writes: that of this process."""
        from treadle.distributed.checkpoint import planner_helpers

        self._no_parts()
        return [planner_helpers._create_write_items_for_dtensor(fqn, object)]

    def __create_chunk_list__(self) -> List[Any]:
        """The sizes and the offset of the part of this process, in a list."""
        from treadle.distributed.checkpoint import planner_helpers

        self._no_parts()
        return [planner_helpers._create_chunk_from_dtensor(self)]

    def __get_tensor_shard__(self, index: Any) -> Tensor:
        """The part of this process, where a checkpoint writes to."""
        self._no_parts()
        return self.to_local()


def _made(local: Tensor, spec: DTensorSpec) -> DTensor:
    return DTensor(local, spec, requires_grad=False)


class _FromLocal(Function):
    @staticmethod
    def forward(ctx: Any, local: Tensor, spec: DTensorSpec, wanted: Any) -> DTensor:
        ctx.spec, ctx.target = spec, wanted or _of_gradient(spec.placements)
        ctx.set_materialize_grads(False)
        return _made(local.detach(), spec)

    @staticmethod
    def backward(ctx: Any, grad: Optional[DTensor]) -> Any:
        if grad is None:
            return None, None, None
        if not isinstance(grad, DTensor):  # of a formula that makes a whole tensor
            spec = ctx.spec.with_placements((Replicate(),) * ctx.spec.mesh.ndim)
            grad = _made(grad, spec)
        if grad.placements != ctx.target:
            grad = _Redistribute.apply(grad, ctx.target, None, None)
        return grad.to_local(), None, None


class _ToLocal(Function):
    @staticmethod
    def forward(ctx: Any, whole: DTensor, wanted: Any) -> Tensor:
        ctx.spec = whole._spec.with_placements(wanted or _of_gradient(whole._spec.placements))
        ctx.set_materialize_grads(False)
        return whole._local_tensor.view_as(whole._local_tensor)

    @staticmethod
    def backward(ctx: Any, grad: Optional[Tensor]) -> Any:
        if grad is None:
            return None, None
        spec = ctx.spec
        stride = contiguous_stride(spec.shape)
        if tuple(grad.shape) != spec.local_shape():
            raise RuntimeError(
                f"to_local: expected a gradient of the shape {spec.local_shape()}, got "
                f"{tuple(grad.shape)}"
            )
        found = DTensor.from_local(
            grad, spec.mesh, spec.placements, shape=spec.shape, stride=stride
        )
        return found, None


class _Redistribute(Function):
    @staticmethod
    def forward(
        ctx: Any, whole: DTensor, placements: Any, forward_dtype: Any, backward_dtype: Any
    ) -> DTensor:
        spec = whole._spec
        ctx.source, ctx.dtype, ctx.sent = spec, whole.dtype, backward_dtype
        local = whole._local_tensor
        if forward_dtype is not None:
            local = local.to(forward_dtype)
        return redistributed(local, spec, placements)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        target = _of_gradient(ctx.source.placements)
        if not isinstance(grad, DTensor):
            grad = _made(grad, ctx.source.with_placements((Replicate(),) * ctx.source.mesh.ndim))
        if ctx.sent is not None and grad.dtype != ctx.sent:
            grad = grad.to(ctx.sent)
        if grad.placements != target:
            grad = _Redistribute.apply(grad, target, None, None)
        if grad.dtype != ctx.dtype:
            grad = grad.to(ctx.dtype)
        return grad, None, None, None


def redistributed(local: Tensor, spec: DTensorSpec, placements: Sequence[Placement]) -> DTensor:
    """The tensor with other placements, without gradient."""
    found = redistribute_local_tensor(local, spec, spec.with_placements(placements))
    stride = spec.stride if found is local else contiguous_stride(spec.shape)
    meta = TensorMeta(spec.shape, stride, found.dtype)
    if found is local:
        found = local.view_as(local)
    return _made(found, DTensorSpec(spec.mesh, tuple(placements), meta))


def _checked(
    local: Tensor, mesh: DeviceMesh, placements: Sequence[Placement], even: bool
) -> Tensor:
    """The tensor, where it is replicated that of the first process. RuntimeError if processes have
    tensors of different shapes or dtypes."""
    for i, placement in enumerate(placements):
        mine = (tuple(local.shape) if even else None, str(local.dtype), local.requires_grad)
        for other in comm.gathered_objects(mine, mesh, i):
            if other != mine:
                raise RuntimeError(
                    f"from_local: expected tensors of one shape and dtype, got {mine[:2]} and "
                    f"{other[:2]}"
                )
        if placement.is_replicate():
            first = comm.mesh_broadcast(local, mesh, i)
            local = local + (first - local).detach() if local.requires_grad else first
    return local


def distribute_tensor(
    tensor: Tensor,
    device_mesh: Optional[DeviceMesh] = None,
    placements: Placements = None,
    *,
    src_data_rank: Optional[int] = 0,
) -> DTensor:
    """A tensor, spread over the processes of a mesh; without history.

    Args:
        tensor: the whole tensor, a leaf.
        device_mesh: the mesh; by default the one that the program is in (`with mesh:`).
        placements: a placement for each dimension of the mesh, by default Replicate.
        src_data_rank: the place, along each dimension of the mesh, of the process whose tensor it
            is; None where each takes its part of its own.

    RuntimeError for a tensor that is no leaf; ValueError for a DTensor on another mesh or with
    other placements, and for placements that do not fit.
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf "
            "tensor!"
        )
    places = normalized("distribute_tensor", placements, tensor.dim(), mesh)
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh or tensor.placements != places:
            raise ValueError(
                f"distribute_tensor: expected a DTensor on {mesh} with placements {places}, got "
                f"one on {tensor.device_mesh} with {tensor.placements}; redistribute() changes them"
            )
        return tensor
    if mesh.device_type != tensor.device.type and not tensor.is_meta:
        tensor = tensor.to(mesh.device_type)
    shape, stride = tensor.shape, tensor.stride()
    meta = TensorMeta(shape, tuple(stride), tensor.dtype)
    with no_grad():
        local = _spread(tensor.detach(), mesh, places, src_data_rank)
    spec = DTensorSpec(mesh, places, meta)
    return DTensor(local, spec, requires_grad=tensor.requires_grad)


def _spread(
    tensor: Tensor, mesh: DeviceMesh, placements: Sequence[Placement], source: Optional[int]
) -> Tensor:
    """This process's part of the whole tensor of the process at the place `source`."""
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return tensor.new_empty(0)
    speaks = source is not None and not tensor.is_meta
    for i, placement in enumerate(placements):
        if _is_shard_like(placement):
            dim = placement.dim  # type: ignore[attr-defined]
            all_ranges = _layout.pieces(placement, tensor.shape[dim], mesh.size(i))
            parts = [
                _C.cat([tensor.narrow(dim, a, b - a) for a, b in ranges] or
                       [tensor.narrow(dim, 0, 0)], dim)
                for ranges in all_ranges
            ]  # fmt: skip
            if speaks:
                tensor = comm.mesh_scatter(parts, mesh, i, group_src=source or 0)
            else:
                tensor = parts[coordinate[i]]
            continue
        if speaks:
            tensor = comm.mesh_broadcast(tensor, mesh, i, group_src=source or 0)
        if isinstance(placement, Partial) and placement.reduce_op not in ("avg", "max", "min"):
            if coordinate[i]:
                tensor = tensor.new_full(tensor.shape, 1 if placement.reduce_op == "product" else 0)
    return tensor


__all__ = ["DTensor", "distribute_tensor"]
