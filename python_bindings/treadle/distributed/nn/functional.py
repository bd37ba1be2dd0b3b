"""Collective functions with gradients. The gradient of each is the function that carries values the
other way; all processes call backward(), too.

    total = dist.nn.functional.all_reduce(loss)
    total.backward()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.autograd import Function
from treadle.distributed import collectives
from treadle.distributed._world import _default, group_of
from treadle.distributed.collectives import Group
from treadle.distributed.reduce_op import AnyOp, ReduceOp


def _here(group: Group) -> Any:
    found = group_of(group)
    return _default() if found is None else found


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().clone(memory_format=_C.contiguous_format)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = _copy(tensor)
        collectives.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        total = _copy(grad)
        collectives.reduce(total, ctx.src, group=ctx.group)
        is_source = ctx.group.members[ctx.group.rank()] == ctx.src
        return None, None, total if is_source else _C.zeros_like(total)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: AnyOp, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        result = _copy(tensor)
        collectives.reduce(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        given = _copy(grad)
        collectives.broadcast(given, ctx.dst, ctx.group)
        return None, None, None, given


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: AnyOp, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        result = _copy(tensor)
        collectives.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> Tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        places = [_C.zeros_like(tensor) for _ in range(group.size())]
        is_root = group.members[group.rank()] == dst
        collectives.gather(_copy(tensor), places if is_root else None, dst, group)
        return tuple(places)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = _C.zeros_like(tensors[0])
        is_root = group.members[group.rank()] == src
        collectives.scatter(result, list(tensors) if is_root else None, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return (None, None, *_Gather.apply(ctx.src, ctx.group, grad))


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: AnyOp, group: Any, output: Tensor, *inputs: Tensor) -> Tensor:
        ctx.group = group
        result = _C.empty_like(output)
        collectives.reduce_scatter(result, list(inputs), op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return (None, None, None, *_AllGather.apply(ctx.group, grad))


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> Tuple[Tensor, ...]:
        ctx.group = group
        places = [_C.empty_like(tensor) for _ in range(group.size())]
        collectives.all_gather(places, _copy(tensor), group)
        return tuple(places)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        mine = grads[ctx.group.rank()]
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, mine, *grads)


class _AllGatherBase(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Tensor, tensor: Tensor) -> Tensor:
        ctx.group, ctx.shape = group, tensor.shape
        result = _C.empty_like(output)
        collectives.all_gather_into_tensor(result, _copy(tensor), group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        result = _C.empty(ctx.shape, dtype=grad.dtype, device=grad.device)
        collectives.reduce_scatter_tensor(result, _copy(grad), ReduceOp.SUM, ctx.group)
        return None, None, result


class _AllToAll(Function):
    @staticmethod
    def forward(
        ctx: Any, group: Any, outputs: Sequence[Tensor], *inputs: Tensor
    ) -> Tuple[Tensor, ...]:
        ctx.group = group
        ctx.shapes = [t.shape for t in inputs]
        results = [_C.empty_like(t) for t in outputs]
        collectives.all_to_all(results, [_copy(t) for t in inputs], group)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        like = grads[0]
        places = [_C.empty(s, dtype=like.dtype, device=like.device) for s in ctx.shapes]
        return (None, None, *_AllToAll.apply(ctx.group, places, *grads))


class _AllToAllSingle(Function):
    @staticmethod
    def forward(
        ctx: Any,
        group: Any,
        output: Tensor,
        output_sizes: Optional[Sequence[int]],
        input_sizes: Optional[Sequence[int]],
        tensor: Tensor,
    ) -> Tensor:
        ctx.group, ctx.shape = group, tensor.shape
        ctx.sizes = (input_sizes, output_sizes)
        result = _C.empty_like(output)
        collectives.all_to_all_single(result, _copy(tensor), output_sizes, input_sizes, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        place = _C.empty(ctx.shape, dtype=grad.dtype, device=grad.device)
        back = _AllToAllSingle.apply(ctx.group, place, *ctx.sizes, grad)
        return None, None, None, None, back


def broadcast(tensor: Tensor, src: int, group: Group = None) -> Tensor:
    """The tensor of the process `src`."""
    return _Broadcast.apply(src, _here(group), tensor)


def gather(tensor: Tensor, dst: int = 0, group: Group = None) -> Tuple[Tensor, ...]:
    """In the process `dst` the tensors of all, elsewhere zeros."""
    return _Gather.apply(dst, _here(group), tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Group = None) -> Tensor:
    """This process's tensor of the list of the process `src`. Each gives a list, for the shapes."""
    return _Scatter.apply(src, _here(group), *tensors)


def reduce(tensor: Tensor, dst: int, op: AnyOp = ReduceOp.SUM, group: Group = None) -> Tensor:
    """In the process `dst` the sum of all tensors, or what else `op` makes of them."""
    return _Reduce.apply(dst, op, _here(group), tensor)


def reduce_scatter(
    output: Tensor, input_list: List[Tensor], op: AnyOp = ReduceOp.SUM, group: Group = None
) -> Tensor:
    """The sum of what all processes have for this one in their lists, of the shape of `output`."""
    return _ReduceScatter.apply(op, _here(group), output, *input_list)


def all_gather(tensor: Tensor, group: Group = None) -> Tuple[Tensor, ...]:
    """The tensors of all processes, in the order of ranks."""
    return _AllGather.apply(_here(group), tensor)


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: Group = None) -> Tensor:
    """As all_gather(), as one tensor of the shape of `output_tensor`."""
    return _AllGatherBase.apply(_here(group), output_tensor, input_tensor)


def all_to_all(
    output_tensor_list: List[Tensor], input_tensor_list: List[Tensor], group: Group = None
) -> Tuple[Tensor, ...]:
    """The tensors that all processes have for this one, of the shapes of the output list."""
    return _AllToAll.apply(_here(group), output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Optional[Sequence[int]] = None,
    input_split_sizes: Optional[Sequence[int]] = None,
    group: Group = None,
) -> Tensor:
    """As all_to_all(), with tensors that are split along their first dimension."""
    return _AllToAllSingle.apply(_here(group), output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Tensor, op: AnyOp = ReduceOp.SUM, group: Group = None) -> Tensor:
    """The sum of the tensors of all processes, or what else `op` makes of them."""
    return _AllReduce.apply(op, _here(group), tensor)
