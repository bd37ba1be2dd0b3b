"""The sum of sparse tensors over processes, whose entries differ in number and place."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.sparse import sparse_coo_tensor


def _gathered(tensor: Tensor, counts: List[int], group: Any) -> Tensor:
    """The rows of all processes, in the order of ranks. All send as many as the longest has."""
    rows = max(counts)
    padded = tensor.new_zeros((rows, *tensor.shape[1:]))
    padded[: tensor.shape[0]].copy_(tensor)
    everybody = tensor.new_empty((len(counts) * rows, *tensor.shape[1:]))
    dist.all_gather_into_tensor(everybody, padded, group=group)
    pieces = everybody.split(rows)
    return _C.cat([piece[:count] for piece, count in zip(pieces, counts)])


def sum_of_sparse(tensor: Tensor, group: Any = None) -> Tensor:
    """The coalesced sum of a sparse COO tensor over all processes, the same bits in each."""
    tensor = tensor.detach().coalesce()
    size = dist.get_world_size(group)
    if size == 1:
        return tensor
    indices, values = tensor.indices(), tensor.values()
    every = _C.zeros(size, dtype=_C.int64)
    dist.all_gather_into_tensor(every, _C.tensor([values.shape[0]]), group=group)
    counts = every.tolist()
    if max(counts) == 0:
        return tensor
    places = _gathered(indices.t().contiguous(), counts, group).t().contiguous()
    entries = _gathered(values.contiguous(), counts, group)
    return sparse_coo_tensor(places, entries, tensor.shape).coalesce()
