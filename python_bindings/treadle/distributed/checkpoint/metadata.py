"""The metadata of a checkpoint: for each key the shape, the dtype and the pieces of a tensor,
or that it is another value.

The classes and their fields are those of PyTorch, because `.metadata` is a pickle of them.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Dict, List, Optional, Tuple, Union

from treadle import _C
from treadle._C import Tensor

STATE_DICT_TYPE = Dict[str, Any]


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor: where it begins, and its shape."""

    offsets: _C.Size
    sizes: _C.Size


class _MEM_FORMAT_ENCODING(Enum):  # noqa: N801
    """A memory format as `.metadata` has it."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = {
    _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT: _C.contiguous_format,
    _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST: _C.channels_last,
    _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT: _C.preserve_format,
}


@dataclass
class TensorProperties:
    """The properties of a tensor, besides its shape. Only `dtype` is used when a checkpoint is
    read."""

    dtype: _C.dtype = field(default_factory=lambda: _C.get_default_dtype())
    layout: _C.layout = field(default_factory=lambda: _C.strided)
    requires_grad: bool = False
    memory_format: _C.memory_format = field(default_factory=lambda: _C.contiguous_format)
    pin_memory: bool = False
    strides: Optional[Tuple[int, ...]] = None

    def __getstate__(self) -> tuple:
        encoding = next((key for key, kept in _FORMATS.items() if kept == self.memory_format), None)
        if encoding is None:
            raise RuntimeError(
                "TensorProperties: expected memory_format to be contiguous_format, channels_last "
                f"or preserve_format, got {self.memory_format}"
            )
        rest = (self.pin_memory, self.strides)
        return (self.dtype, self.layout, self.requires_grad, encoding, *rest)

    def __setstate__(self, state: tuple) -> None:
        # Checkpoints before PyTorch 2.9 have no strides.
        if type(state) is not tuple or len(state) not in (5, 6):
            raise ValueError("TensorProperties: expected 5 or 6 values")
        self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory = state[:5]
        self.memory_format = _FORMATS[encoding]
        self.strides = state[5] if len(state) == 6 else None

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """The properties of a tensor."""
        strides = tuple(tensor.stride()) if tensor.layout == _C.strided else None
        return TensorProperties(
            dtype=tensor.dtype,
            layout=tensor.layout,
            requires_grad=tensor.requires_grad,
            pin_memory=tensor.is_pinned(),
            strides=strides,
        )


@dataclass
class TensorStorageMetadata:
    """A tensor: its properties, its whole shape, and the boxes in which it was written."""

    properties: TensorProperties
    size: _C.Size
    chunks: List[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """A value that is no tensor."""


STORAGE_TYPES = Union[TensorStorageMetadata, BytesStorageMetadata]


@dataclass
class StorageMeta:
    """The place of a checkpoint, and the names of the calls that saved and loaded it."""

    checkpoint_id: Union[str, os.PathLike, None] = None
    save_id: Optional[str] = None
    load_id: Optional[str] = None
    modules: List[str] = field(default_factory=list)


@dataclass
class Metadata:
    """A whole checkpoint. `planner_data` has the path of each key in the nested state
    dictionary, `storage_data` the file, offset and length of each piece."""

    state_dict_metadata: Dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: Optional[StorageMeta] = None
    version: Optional[str] = None


@dataclass(frozen=True)
class MetadataIndex:
    """The name of a piece: its key and where it begins in the tensor. `index`, its place in the
    list of pieces, only makes a search short and does not count in comparisons."""

    fqn: str
    offset: Optional[_C.Size] = None
    index: Optional[int] = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Any = None, index: Optional[int] = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "offset", None if offset is None else _C.Size(offset))
        object.__setattr__(self, "index", index)


__all__ = [
    "BytesStorageMetadata",
    "ChunkStorageMetadata",
    "Metadata",
    "MetadataIndex",
    "StorageMeta",
    "TensorProperties",
    "TensorStorageMetadata",
]
