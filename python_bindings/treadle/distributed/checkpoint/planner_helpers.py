"""The boxes of tensors, and the items that write and read them.

A tensor that is spread over processes has a box in each; one that is not is a single box. What is
read are the overlaps of the boxes in the checkpoint with those that are needed.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator, List, Optional, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.distributed.checkpoint._spread import is_here, is_spread, local_box, local_part
from treadle.distributed.checkpoint.metadata import (
    STORAGE_TYPES,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from treadle.distributed.checkpoint.planner import (
    LoadItemType,
    ReadItem,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)


def _whole(tensor: Tensor) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(_C.Size([0] * tensor.dim()), _C.Size(tensor.shape))


def _create_chunk_from_dtensor(tensor: Any) -> ChunkStorageMetadata:
    """The box of a DTensor that this process has."""
    return local_box(tensor)


def _create_write_items_for_dtensor(fqn: str, tensor: Any) -> WriteItem:
    """The items that this process writes of a DTensor."""
    return _write_item(fqn, tensor, local_part(tensor), local_box(tensor), WriteItemType.SHARD)


def _write_item(
    fqn: str, whole: Tensor, part: Tensor, box: ChunkStorageMetadata, kind: WriteItemType
) -> WriteItem:
    properties = TensorProperties.create_from_tensor(part)
    data = TensorWriteData(box, properties, _C.Size(whole.shape))
    return WriteItem(MetadataIndex(fqn, box.offsets), kind, tensor_data=data)


def _has_something(tensor: Any, box: ChunkStorageMetadata) -> bool:
    """Whether a box has elements, as it must if the tensor does."""
    return 0 not in box.sizes or not tensor.numel()


def _create_chunk_list(tensor: Any) -> List[ChunkStorageMetadata]:
    """The boxes of a tensor that this process has."""
    if is_spread(tensor) and not is_here(tensor):
        return []
    if hasattr(tensor, "__create_chunk_list__"):
        boxes = tensor.__create_chunk_list__()
    else:
        boxes = [local_box(tensor) if is_spread(tensor) else _whole(tensor)]
    return [box for box in boxes if _has_something(tensor, box)]


def _create_write_items(fqn: str, value: Any) -> List[WriteItem]:
    """The items that this process could write of a value."""
    if is_spread(value) and not is_here(value):
        return []
    if hasattr(value, "__create_write_items__"):
        items = value.__create_write_items__(fqn, value)
    elif not isinstance(value, Tensor):
        return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)]
    elif is_spread(value):
        items = [_create_write_items_for_dtensor(fqn, value)]
    else:
        items = [_write_item(fqn, value, value, _whole(value), WriteItemType.TENSOR)]
    return [
        item
        for item in items
        if item.tensor_data is None or _has_something(value, item.tensor_data.chunk)
    ]


def _overlap(
    saved: ChunkStorageMetadata, needed: ChunkStorageMetadata
) -> Optional[Tuple[List[int], List[int], List[int]]]:
    """The overlap of two boxes: the offset in the first one, the offset in the second one, and the
    lengths. None where they do not."""
    begins = [max(a, b) for a, b in zip(saved.offsets, needed.offsets)]
    ends = [
        min(a + m, b + n)
        for a, m, b, n in zip(saved.offsets, saved.sizes, needed.offsets, needed.sizes)
    ]
    lengths = [end - begin for begin, end in zip(begins, ends)]
    if any(length <= 0 for length in lengths):
        return None
    in_saved = [begin - offset for begin, offset in zip(begins, saved.offsets)]
    in_needed = [begin - offset for begin, offset in zip(begins, needed.offsets)]
    return in_saved, in_needed, lengths


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: List[ChunkStorageMetadata]
) -> List[ReadItem]:
    """The items to read for some boxes of a tensor, of which the checkpoint has others."""
    return list(_read_items(fqn, checkpoint_md, local_chunks))


def _read_items(
    fqn: str, saved: TensorStorageMetadata, needed: List[ChunkStorageMetadata]
) -> Iterator[ReadItem]:
    for number, box in enumerate(needed):
        for place, chunk in enumerate(saved.chunks):
            overlap = _overlap(chunk, box)
            if overlap is None:
                continue
            in_saved, in_needed, lengths = map(_C.Size, overlap)
            yield ReadItem(
                LoadItemType.TENSOR,
                MetadataIndex(fqn, box.offsets, number),
                in_needed,
                MetadataIndex(fqn, chunk.offsets, place),
                in_saved,
                lengths,
            )


def _create_read_items(fqn: str, saved: STORAGE_TYPES, value: Any) -> List[ReadItem]:
    """The items to read for a value of the state dictionary."""
    if isinstance(saved, BytesStorageMetadata):
        index, start = MetadataIndex(fqn), _C.Size([0])
        return [ReadItem(LoadItemType.BYTE_IO, index, start, index, start, _C.Size([0]))]
    if not isinstance(value, Tensor):
        raise ValueError(
            f"load: expected a tensor for {fqn!r}, as in the checkpoint, got {type(value).__name__}"
        )
    return create_read_items_for_chunk_list(fqn, saved, _create_chunk_list(value))


def find_state_dict_object(state_dict: Any, index: MetadataIndex) -> Any:
    """The value that an index names; the part that this process has of a tensor that is spread."""
    if index.fqn not in state_dict:
        raise ValueError(f"expected the key {index.fqn!r} in the state dictionary, got none")
    value = state_dict[index.fqn]
    if hasattr(value, "__get_tensor_shard__"):
        return value.__get_tensor_shard__(index)
    if isinstance(value, Tensor) and is_spread(value):
        return local_part(value)
    if index.offset is not None and any(index.offset):
        raise ValueError(
            f"expected a part of {index.fqn!r} from {tuple(index.offset)} on, got a whole "
            f"{type(value).__name__}"
        )
    return value


def narrow(tensor: Tensor, offsets: Any, lengths: Any) -> Tensor:
    """The view of a box of a tensor."""
    for dim, (offset, length) in enumerate(zip(offsets, lengths)):
        if tensor.shape[dim] != length:
            tensor = tensor.narrow(dim, offset, length)
    return tensor


__all__ = ["create_read_items_for_chunk_list"]
