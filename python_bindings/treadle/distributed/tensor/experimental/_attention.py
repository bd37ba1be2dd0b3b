"""context_parallel: a block in which sequences are divided among processes, and attention is that
of the whole sequence.

    with context_parallel(mesh, buffers=[tokens, targets], buffer_seq_dims=[1, 1]):
        loss = cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        loss.backward()              # the gradients are those of this process's part of the loss
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import threading
from typing import Any, Iterator, List, Optional, Set

from treadle import _C, _names
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed.tensor import _collective_utils as comm
from treadle.distributed.tensor._api import DTensor
from treadle.distributed.tensor.experimental._ring import Parts, ring_attention
from treadle.nn import functional
from treadle.nn.functional import attention as functional_attention


class _RotateMethod(enum.Enum):
    ALL_TO_ALL = enum.auto()
    ALL_GATHER = enum.auto()


@dataclasses.dataclass
class _ContextParallelOptions:
    """The settings of the program: whether each process gets a chunk from the head of the sequence
    and one from its tail, where there are enough of them; and how keys and values are sent."""

    enable_load_balance: bool = True
    rotate_method: _RotateMethod = _RotateMethod.ALL_GATHER


_cp_options = _ContextParallelOptions()


def set_rotate_method(rotate_method: str) -> None:
    """Choose how processes get the keys and values of the others: "allgather" (the default), all at
    once, or "alltoall", one process after the other, which takes less memory. NotImplementedError
    for another name."""
    methods = {"allgather": _RotateMethod.ALL_GATHER, "alltoall": _RotateMethod.ALL_TO_ALL}
    if rotate_method not in methods:
        raise NotImplementedError(
            f"Context Parallel does not support using {rotate_method} for kv shards rotation"
        )
    _cp_options.rotate_method = methods[rotate_method]


class _Blocks(threading.local):
    """The blocks that this thread is in; None in a thread that was never in one."""

    parts: Optional[List[Parts]] = None


_blocks = _Blocks()
_of_all_threads: List[Parts] = []
_lock = threading.Lock()
_own_attention = functional.scaled_dot_product_attention
# The modules whose functions call attention by its name. A checkpoint calls them again within
# backward(), where no mode is active, so that attention has to be replaced in its place.
_MODULES = (functional, functional_attention)


def _set_attention(function: Any) -> None:
    for module in _MODULES:
        module.scaled_dot_product_attention = function  # type: ignore[attr-defined]


@functools.wraps(_own_attention)
def _attention(*args: Any, **kwargs: Any) -> Any:
    """Stands for scaled_dot_product_attention() while a block is open. A thread that was never in
    a block, such as one of backward(), is in that which was opened last."""
    stack = _of_all_threads if _blocks.parts is None else _blocks.parts
    if not stack or any(isinstance(value, DTensor) for value in (*args, *kwargs.values())):
        return _own_attention(*args, **kwargs)
    return ring_attention(stack[-1], *args, **kwargs)


@contextlib.contextmanager
def _spread_attention(parts: Parts) -> Iterator[None]:
    """A block in which attention of plain tensors is that of a whole sequence."""
    _blocks.parts = [*(_blocks.parts or ()), parts]
    with _lock:
        _of_all_threads.append(parts)
        _set_attention(_attention)
    try:
        yield
    finally:
        _blocks.parts = _blocks.parts[:-1]
        with _lock:
            _of_all_threads.remove(parts)
            if not _of_all_threads:
                _set_attention(_own_attention)


def _parts_of(function: str, mesh: DeviceMesh, length: Optional[int]) -> Parts:
    """How a sequence of this length is divided."""
    if mesh.ndim != 1:
        raise ValueError(f"{function}: expected a mesh of one dimension, got {mesh.ndim}")
    balanced = _cp_options.enable_load_balance
    if length is not None:
        balanced = balanced and length % (2 * mesh.size()) == 0
    return Parts(mesh, balanced, _cp_options.rotate_method is _RotateMethod.ALL_TO_ALL)


def _own_part(function: str, tensor: Tensor, dim: int, parts: Parts) -> Tensor:
    """This process's part of a tensor, a new one."""
    chunks = parts.chunks_of(parts.place)
    count = parts.count * len(chunks)
    if tensor.shape[dim] % count:
        raise ValueError(
            f"{function}: expected buffers whose sequences divide into {count} chunks, got "
            f"dimension {dim} of the shape {tuple(tensor.shape)}"
        )
    every = tensor.chunk(count, dim)
    return _C.cat([every[chunk] for chunk in chunks], dim)


def _fill(tensor: Tensor, content: Tensor) -> None:
    tensor.resize_(content.shape)
    tensor.copy_(content)


@contextlib.contextmanager
def context_parallel(
    mesh: DeviceMesh,
    *,
    buffers: Optional[List[Tensor]] = None,
    buffer_seq_dims: Optional[List[int]] = None,
    no_restore_buffers: Optional[Set[Tensor]] = None,
) -> Iterator[None]:
    """A block in which each process has a part of the sequence, and scaled_dot_product_attention()
    computes its part of the attention over the whole sequence.

    Args:
        mesh: the processes, in one dimension.
        buffers: tensors with a sequence, such as tokens, targets and tables of positions; the same
            in all processes, and no parameters. In the block they have this process's part, in
            place; after it they are whole again.
        buffer_seq_dims: the dimension of the sequence of each buffer.
        no_restore_buffers: those of `buffers` that keep this process's part after the block.

    With 2n chunks for n processes, process r gets the chunks r and 2n - 1 - r, so that all have the
    same work in causal attention; a sequence that divides into n chunks only is cut in order.

    ValueError for a mesh of more dimensions, for lists of different lengths, for other
    `no_restore_buffers`, and for sequences that do not divide.
    """
    name = "context_parallel"
    buffers, dims = list(buffers or ()), list(buffer_seq_dims or ())
    kept = {id(tensor) for tensor in no_restore_buffers or ()}
    if len(buffers) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    if not kept <= {id(tensor) for tensor in buffers}:
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    parts = _parts_of(name, mesh, buffers[0].shape[dims[0]] if buffers else None)
    with no_grad():
        mine = [_own_part(name, tensor, dim, parts) for tensor, dim in zip(buffers, dims)]
        whole = [None if id(tensor) in kept else tensor.clone() for tensor in buffers]
        for tensor, part in zip(buffers, mine):
            _fill(tensor, part)
    try:
        with _spread_attention(parts):
            yield
    finally:
        with no_grad():
            for tensor, content in zip(buffers, whole):
                if content is not None:
                    _fill(tensor, content)


@no_grad()
def context_parallel_unshard(
    mesh: DeviceMesh, buffers: List[Tensor], seq_dims: List[int], load_balancer: Any = None
) -> List[Tensor]:
    """The whole tensors of which the processes have the parts that context_parallel() gave them,
    such as the outputs of a block; new tensors, without gradient.

    Args:
        mesh: the processes, in one dimension.
        buffers: this process's parts, of the same shapes in all processes.
        seq_dims: the dimension of the sequence of each buffer.
        load_balancer: None, as the order of chunks follows from the length.

    ValueError for a load_balancer, and for lists of different lengths.
    """
    name = "context_parallel_unshard"
    if load_balancer is not None:
        raise ValueError(
            f"{name}: expected load_balancer = None, got {type(load_balancer).__name__}"
        )
    if len(buffers) != len(seq_dims):
        raise ValueError(
            f"{name}: expected a dimension for each of {len(buffers)} buffers, got {len(seq_dims)}"
        )
    found = []
    for tensor, dim in zip(buffers, seq_dims):
        parts = _parts_of(name, mesh, tensor.shape[dim] * mesh.size())
        order = parts.chunks()
        every: List[Tensor] = []
        for part in comm.all_gathered(tensor, mesh, 0):
            every += part.chunk(len(order) // mesh.size(), dim)
        pieces = [piece for _, piece in sorted(zip(order, every), key=lambda pair: pair[0])]
        found.append(_C.cat(pieces, dim))
    return found


__all__ = ["context_parallel", "context_parallel_unshard", "set_rotate_method"]

__getattr__ = _names.attributes_of(__name__)
