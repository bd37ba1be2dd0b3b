"""Parameters and buffers that all processes have from one: compared, and sent in few messages."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor

MOST_BYTES = 250 << 20  # of a message


def expect_same(named: Dict[str, Tensor], group: Any) -> None:
    """RuntimeError in all processes if one has other names, shapes, strides or dtypes than the
    first; it names the process and the parameter."""
    if dist.get_world_size(group) == 1:
        return
    mine = [
        (name, tuple(p.shape), tuple(p.stride()), str(p.dtype).partition(".")[2])
        for name, p in named.items()
    ]
    everybody: List[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everybody, mine, group=group)
    first, ranks = everybody[0], dist.get_process_group_ranks(group)
    for rank, other in zip(ranks, everybody):
        for expected, got in zip(first, other):
            if expected != got:
                raise RuntimeError(
                    f"DistributedDataParallel: expected in rank {rank} the parameters of rank "
                    f"{ranks[0]}, {_described(expected)}, got {_described(got)}"
                )
        if len(first) != len(other):
            raise RuntimeError(
                f"DistributedDataParallel: expected in rank {rank} the parameters of rank "
                f"{ranks[0]}, {len(first)} of them, got {len(other)}"
            )


def _described(entry: tuple) -> str:
    name, shape, strides, dtype = entry
    return f"{name} of shape {shape}, strides {strides}, {dtype}"


def _coalesced(tensors: Sequence[Tensor], most_bytes: int) -> List[List[Tensor]]:
    """The tensors in messages: each has one dtype and one device."""
    messages: List[List[Tensor]] = []
    open_ones: Dict[Any, int] = {}
    sizes: Dict[Any, int] = {}
    for tensor in tensors:
        key, size = (tensor.dtype, tensor.device), tensor.numel() * tensor.element_size()
        if key not in open_ones or sizes[key] + size > most_bytes:
            open_ones[key], sizes[key] = len(messages), 0
            messages.append([])
        messages[open_ones[key]].append(tensor)
        sizes[key] += size
    return messages


def broadcast_all(
    tensors: Sequence[Tensor], source: int, group: Any, most_bytes: int = MOST_BYTES
) -> None:
    """Replace the tensors by those of the member `source` of the group. Graphs that saved them do
    not notice."""
    if dist.get_world_size(group) == 1:
        return
    mine = dist.get_rank(group) == source
    for message in _coalesced([tensor.detach() for tensor in tensors], most_bytes):
        flat = _C.cat([tensor.reshape(-1) for tensor in message])
        dist.broadcast(flat, group=group, group_src=source)
        if not mine:
            pieces = flat.split([tensor.numel() for tensor in message])
            for tensor, piece in zip(message, pieces):
                tensor.data.copy_(piece.view(tensor.shape))
