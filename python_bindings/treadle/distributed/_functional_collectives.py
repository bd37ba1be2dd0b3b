"""Collective functions that return new tensors: PyTorch's names for traced programs.

    total = all_reduce(tensor, "sum", group)

A group is a ProcessGroup, its name, a list of ranks, or a device mesh of one dimension. The calls
have ended when the functions return, so wait_tensor() has nothing to wait for.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Union

from treadle import _C
from treadle._C import Tensor
from treadle.distributed import collectives
from treadle.distributed import nn as with_gradients
from treadle.distributed._world import _world, new_group
from treadle.distributed.groups import resolve_process_group
from treadle.distributed.process_group import ProcessGroup
from treadle.distributed.reduce_op import AnyOp, ReduceOp


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


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, when its data is there: at once."""
    return tensor


def wait_tensors(tensors: List[Tensor]) -> List[Tensor]:
    """The tensors, when their data is there: at once."""
    return tensors


def broadcast(self: Tensor, src: int, group: Any) -> Tensor:
    """The tensor of a process, given by its rank in the group of all."""
    result = self.detach().contiguous().clone()
    collectives.broadcast(result, src, _resolve(group))
    return result


def all_reduce(self: Tensor, reduceOp: Union[str, AnyOp], group: Any) -> Tensor:  # noqa: N803
    """The sum of the tensors of all processes, or what else the operation makes of them."""
    return with_gradients.functional.all_reduce(self, _op(reduceOp), _resolve(group))


def all_reduce_coalesced(
    self: List[Tensor],
    reduceOp: Union[str, AnyOp],
    group: Any,  # noqa: N803
) -> List[Tensor]:
    """As all_reduce(), of several tensors."""
    return [all_reduce(tensor, reduceOp, group) for tensor in self]


def all_gather_single(self: Tensor, gather_dim: int, group: Any) -> Tensor:
    """The tensors of all processes, put together along a dimension."""
    found = _resolve(group)
    pieces = with_gradients.functional.all_gather(self.contiguous(), found)
    return _C.cat(list(pieces), gather_dim)


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
    """This process's piece, along a dimension, of the sum of all tensors."""
    found = _resolve(group)
    rows = self.shape[scatter_dim]
    if rows % found.size():
        raise ValueError(
            f"reduce_scatter_tensor: expected a dimension that {found.size()} divides, got {rows}"
        )
    pieces = [piece.contiguous() for piece in self.chunk(found.size(), scatter_dim)]
    return with_gradients.functional.reduce_scatter(pieces[0], pieces, _op(reduceOp), found)


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
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    place = _C.empty((rows, *self.shape[1:]), dtype=self.dtype, device=self.device)
    return with_gradients.functional.all_to_all_single(
        place, self.contiguous(), output_split_sizes, input_split_sizes, _resolve(group)
    )


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
    flat = all_to_all_single(self.contiguous().reshape(-1), taken, given, found)
    return flat.reshape(self.shape)
