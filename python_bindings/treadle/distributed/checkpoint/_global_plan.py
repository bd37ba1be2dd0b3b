"""The plan that the coordinator makes of those of all processes: a value that several have is
written by one of them, and the boxes of a tensor have to fill it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import math
from typing import Any, Dict, Iterator, List, Tuple

from treadle.distributed.checkpoint.metadata import (
    STORAGE_TYPES,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    TensorStorageMetadata,
)
from treadle.distributed.checkpoint.planner import SavePlan, WriteItem, WriteItemType


def chunk_bytes(item: WriteItem) -> int:
    """The bytes that an item writes; 1 for what is no tensor."""
    data = item.tensor_data
    return 1 if data is None else math.prod(data.chunk.sizes) * data.properties.dtype.itemsize


def dedup_save_plans(
    all_plans: List[SavePlan], save_to_lowest_rank: bool = False
) -> List[SavePlan]:
    """The plans, with each piece in one of them only: in the one that writes least so far, or in
    the first that has it."""
    owners: Dict[MetadataIndex, List[int]] = {}
    items: Dict[MetadataIndex, WriteItem] = {}
    for rank, plan in enumerate(all_plans):
        for item in plan.items:
            owners.setdefault(item.index, []).append(rank)
            items[item.index] = item
    written = [0] * len(all_plans)
    chosen: Dict[MetadataIndex, int] = {}
    for index, ranks in owners.items():
        rank = ranks[0] if save_to_lowest_rank else min(ranks, key=written.__getitem__)
        written[rank] += max(chunk_bytes(items[index]), 1)
        chosen[index] = rank
    return [
        dataclasses.replace(plan, items=[i for i in plan.items if chosen[i.index] == rank])
        for rank, plan in enumerate(all_plans)
    ]


def create_default_global_save_plan(
    all_plans: List[SavePlan], rewrite_index_hints: bool = True
) -> Tuple[List[SavePlan], Metadata]:
    """The metadata of the pieces in the plans; the plans, with each index saying which place its
    piece has in the list of the tensor's."""
    known: Dict[str, STORAGE_TYPES] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            fqn = item.index.fqn
            if item.type != WriteItemType.SHARD and fqn in known:
                raise ValueError(f"save: expected one value for the key {fqn!r}, got two")
            if item.tensor_data is None:
                known[fqn] = BytesStorageMetadata()
            else:
                data = item.tensor_data
                fresh = TensorStorageMetadata(data.properties, data.size, [])
                saved: Any = known.setdefault(fqn, fresh)
                if rewrite_index_hints:
                    index = dataclasses.replace(item.index, index=len(saved.chunks))
                    item = dataclasses.replace(item, index=index)
                saved.chunks.append(data.chunk)
            items.append(item)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(known)


def outside(size: Any, box: ChunkStorageMetadata) -> bool:
    """Whether a box is not in a tensor of that shape."""
    return not len(size) == len(box.offsets) == len(box.sizes) or any(
        offset < 0 or length < 0 or offset + length > whole
        for offset, length, whole in zip(box.offsets, box.sizes, size)
    )


def _overlapping(
    chunks: List[ChunkStorageMetadata], dim: int
) -> Iterator[Tuple[ChunkStorageMetadata, ChunkStorageMetadata]]:
    """Pairs of boxes that overlap. Boxes are visited in the order of where they begin along `dim`,
    so that few pairs are compared."""
    active: List[ChunkStorageMetadata] = []
    for box in sorted(chunks, key=lambda chunk: chunk.offsets[dim]):
        active = [a for a in active if a.offsets[dim] + a.sizes[dim] > box.offsets[dim]]
        for other in active:
            if all(
                max(a, b) < min(a + m, b + n)
                for a, m, b, n in zip(box.offsets, box.sizes, other.offsets, other.sizes)
            ):
                yield other, box
        active.append(box)


def mistakes(metadata: Metadata, is_shared: bool) -> Iterator[str]:
    """The faults of the boxes of tensors. Where only one of several processes saves
    (`is_shared` is False), it may have some of the boxes only."""
    for fqn, saved in metadata.state_dict_metadata.items():
        if isinstance(saved, BytesStorageMetadata) or not saved.size:
            continue
        for box in saved.chunks:
            if outside(saved.size, box):
                yield f"{fqn}: a box {box} outside of the shape {tuple(saved.size)}"
        dim = max(range(len(saved.size)), key=saved.size.__getitem__)
        for one, other in _overlapping(saved.chunks, dim):
            yield f"{fqn}: boxes that overlap, {one} and {other}"
        filled = sum(math.prod(box.sizes) for box in saved.chunks)
        if is_shared and filled != math.prod(saved.size):
            yield f"{fqn}: boxes of {filled} elements for the shape {tuple(saved.size)}"


__all__ = ["chunk_bytes", "create_default_global_save_plan", "dedup_save_plans", "mistakes"]
