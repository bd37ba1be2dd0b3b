"""Collective functions that return new tensors, with gradients, by the names that PyTorch has for
programs that are traced.

    total = all_reduce(tensor, "sum", group)   # goes on beside the program
    print(total)                               # waits

A group is a ProcessGroup, its name, a list of ranks, or a device mesh of one dimension. Results are
AsyncCollectiveTensors: the first operator that reads their elements waits for them.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Union

from treadle import _C
from treadle._C import Tensor
from treadle.autograd import Function
from treadle.distributed import collectives
from treadle.distributed._async_tensor import AsyncCollectiveTensor, filled, waited
from treadle.distributed._world import _world, new_group
from treadle.distributed.groups import resolve_process_group
from treadle.distributed.process_group import ProcessGroup
from treadle.distributed.reduce_op import AnyOp, PremulSum, ReduceOp


def _resolve(group: Any) -> ProcessGroup:
    if isinstance(group, ProcessGroup):
        return group
    if isinstance(group, str):
        return resolve_process_group(group)
    if isinstance(group, (list, tuple)) and all(isinstance(rank, int) for rank in group):
        for known in _world.groups:
            if known.members == tuple(group):
                return known
        made = new_group(group, use_local_synchronization=True)
        assert isinstance(made, ProcessGroup)
        return made
    if isinstance(group, tuple):
        mesh, dimension = group
        return _resolve(mesh.get_group(dimension))
    if hasattr(group, "get_group"):
        return _resolve(group.get_group())
    kind = type(group).__name__
    raise TypeError(f"expected a group, its name, a list of ranks or a mesh, got {kind}")


def _op(op: Union[str, AnyOp]) -> AnyOp:
    if not isinstance(op, str):
        return op
    names = {"sum": "SUM", "avg": "AVG", "product": "PRODUCT", "min": "MIN", "max": "MAX"}
    names.update(band="BAND", bor="BOR", bxor="BXOR")
    if op.lower() not in names:
        raise ValueError(f"expected an operation of {', '.join(names)}, got {op!r}")
    return ReduceOp[names[op.lower()]]


def _copy(tensor: Tensor) -> Tensor:
    return filled(tensor).detach().clone(memory_format=_C.contiguous_format)


def _contiguous(tensor: Tensor) -> Tensor:
    return filled(tensor).detach().contiguous()


def _place(like: Tensor, rows: int) -> Tensor:
    return _C.empty((rows, *like.shape[1:]), dtype=like.dtype, device=like.device)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: AnyOp, group: Any, tensor: Tensor) -> Tensor:
        result = _copy(tensor)
        ctx.op, ctx.group, ctx.result = op, group, result
        if op in (ReduceOp.MIN, ReduceOp.MAX):
            ctx.save_for_backward(tensor)
        work = collectives.all_reduce(result, op, group, async_op=True)
        return AsyncCollectiveTensor(result, work)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        op, group = ctx.op, ctx.group
        is_extreme = op in (ReduceOp.MIN, ReduceOp.MAX)
        if not (is_extreme or op in (ReduceOp.SUM, ReduceOp.AVG) or isinstance(op, PremulSum)):
            raise RuntimeError(
                f"all_reduce: expected sum, avg, premul_sum, min or max for a gradient, got {op}"
            )
        total = all_reduce(grad, ReduceOp.SUM if is_extreme else op, group)
        if not is_extreme:
            return None, None, filled(total)
        # Elements that are the extreme, in all processes, share the gradient.
        (tensor,) = ctx.saved_tensors
        tensor, result = filled(tensor), ctx.result
        chosen = (tensor == result) | (tensor.isnan() & result.isnan())
        count = filled(all_reduce(chosen.to(_C.float32), ReduceOp.SUM, group))
        shared = (filled(total) / count).to(grad.dtype)
        return None, None, _C.where(chosen, shared, _C.zeros_like(shared))


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.group = group
        given = _contiguous(tensor)
        result = _place(given, given.shape[0] * group.size())
        work = collectives.all_gather_into_tensor(result, given, group, async_op=True)
        return AsyncCollectiveTensor(result, work)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, filled(_ReduceScatter.apply(ReduceOp.SUM, ctx.group, grad))


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: AnyOp, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        given = _contiguous(tensor)
        result = _place(given, given.shape[0] // group.size())
        work = collectives.reduce_scatter_tensor(result, given, op, group, async_op=True)
        return AsyncCollectiveTensor(result, work)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        if ctx.op not in (ReduceOp.SUM, ReduceOp.AVG):
            raise RuntimeError(
                f"reduce_scatter_tensor: expected sum or avg for a gradient, got {ctx.op}"
            )
        found = filled(_AllGather.apply(ctx.group, grad))
        return None, None, found / ctx.group.size() if ctx.op == ReduceOp.AVG else found


class _AllToAll(Function):
    @staticmethod
    def forward(
        ctx: Any,
        group: Any,
        output_sizes: Optional[Sequence[int]],
        input_sizes: Optional[Sequence[int]],
        tensor: Tensor,
    ) -> Tensor:
        ctx.group, ctx.sizes = group, (input_sizes, output_sizes)
        given = _contiguous(tensor)
        rows = given.shape[0] if output_sizes is None else sum(output_sizes)
        result = _place(given, rows)
        work = collectives.all_to_all_single(
            result, given, output_sizes, input_sizes, group, async_op=True
        )
        return AsyncCollectiveTensor(result, work)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, None, filled(_AllToAll.apply(ctx.group, *ctx.sizes, grad))


def wait_tensor(tensor: Tensor) -> Tensor:
    """A usual tensor with the elements of a result, when they are there. Raises what went wrong in
    the call that makes them. Other tensors are returned as they are."""
    return waited(tensor)


def wait_tensors(tensors: List[Tensor]) -> List[Tensor]:
    """As wait_tensor(), of several tensors."""
    return [waited(tensor) for tensor in tensors]


def _has_rows(function: str, tensor: Tensor) -> None:
    if tensor.dim() == 0:
        raise ValueError(f"{function}: expected a tensor with a dimension, got shape ()")


def broadcast(self: Tensor, src: int, group: Any) -> Tensor:
    """The tensor of a process, given by its rank in the group of all; it has no gradient."""
    result = _copy(self)
    work = collectives.broadcast(result, src, _resolve(group), async_op=True)
    return AsyncCollectiveTensor(result, work)


def all_reduce(self: Tensor, reduceOp: Union[str, AnyOp], group: Any) -> Tensor:  # noqa: N803
    """The sum of the tensors of all processes, or what else the operation makes of them. There are
    gradients for sum, avg, premul_sum, min and max; elements that are equal share that of min and
    max."""
    return _AllReduce.apply(_op(reduceOp), _resolve(group), self)


def all_reduce_coalesced(
    self: List[Tensor],
    reduceOp: Union[str, AnyOp],
    group: Any,  # noqa: N803
) -> List[Tensor]:
    """As all_reduce(), of several tensors."""
    return [all_reduce(tensor, reduceOp, group) for tensor in self]


def all_gather_single(self: Tensor, gather_dim: int, group: Any) -> Tensor:
    """The tensors of all processes, put together along a dimension. ValueError without one."""
    _has_rows("all_gather_tensor", self)
    found = _resolve(group)
    result = _AllGather.apply(found, self)
    if gather_dim % self.dim() == 0:
        return result
    return _C.cat(list(result.chunk(found.size())), gather_dim)


all_gather_tensor = all_gather_tensor_autograd = all_gather_single
all_gather_single_autograd = all_gather_single


def all_gather_single_coalesced(self: List[Tensor], group: Any) -> List[Tensor]:
    """As all_gather_single(), of several tensors along the first dimension."""
    return [all_gather_single(tensor, 0, group) for tensor in self]


all_gather_into_tensor_coalesced = all_gather_single_coalesced


def reduce_scatter_single(
    self: Tensor,
    reduceOp: Union[str, AnyOp],
    scatter_dim: int,
    group: Any,  # noqa: N803
) -> Tensor:
    """This process's piece, along a dimension, of the sum of all tensors, or what else the
    operation makes of them. There are gradients for sum and avg. ValueError for a dimension that
    the number of processes does not divide."""
    _has_rows("reduce_scatter_tensor", self)
    found = _resolve(group)
    rows = self.shape[scatter_dim]
    if rows % found.size():
        raise ValueError(
            f"reduce_scatter_tensor: expected a dimension that {found.size()} divides, got {rows}"
        )
    if scatter_dim % self.dim() != 0:
        self = _C.cat(list(self.chunk(found.size(), scatter_dim)))
    return _ReduceScatter.apply(_op(reduceOp), found, self)


reduce_scatter_tensor = reduce_scatter_tensor_autograd = reduce_scatter_single
reduce_scatter_single_autograd = reduce_scatter_single


def reduce_scatter_single_coalesced(
    inputs: List[Tensor],
    reduceOp: Union[str, AnyOp],  # noqa: N803
    scatter_dim: Sequence[int],
    group: Any,
) -> List[Tensor]:
    """As reduce_scatter_single(), of several tensors."""
    return [
        reduce_scatter_single(tensor, reduceOp, dimension, group)
        for tensor, dimension in zip(inputs, scatter_dim)
    ]


reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced


def all_to_all_single(
    self: Tensor,
    output_split_sizes: Optional[Sequence[int]],
    input_split_sizes: Optional[Sequence[int]],
    group: Any,
) -> Tensor:
    """The pieces that all processes have for this one, along the first dimension."""
    _has_rows("all_to_all_single", self)
    return _AllToAll.apply(_resolve(group), output_split_sizes, input_split_sizes, self)


all_to_all_single_autograd = all_to_all_single


def permute_tensor(self: Tensor, src_dst: Sequence[int], group: Any) -> Tensor:
    """The tensor of another process: process i sends its own to process src_dst[i]."""
    found = _resolve(group)
    rows, size, me = self.numel(), found.size(), found.rank()
    given, taken = [0] * size, [0] * size
    for source, target in enumerate(src_dst):
        if source == me:
            given[target] = rows
        if target == me:
            taken[source] = rows
    flat = all_to_all_single(self.reshape(-1), taken, given, found)
    return flat.view(self.shape) if flat.numel() == rows else flat
