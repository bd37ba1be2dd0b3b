"""Plans: what each process writes and reads; the classes that make them.

A planner is the view of a state dictionary that storage has. A program changes what is saved or
loaded by a planner of its own, most easily a subclass of the default ones:

    class HalfPlanner(DefaultSavePlanner):
        def transform_object(self, write_item, object): ...
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
import io
import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, List, Optional, Tuple, Union

from treadle import _C
from treadle._C import Tensor
from treadle.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
)


class WriteItemType(Enum):
    """The kinds of items to write: a whole tensor, a box of one, or a value that is no tensor."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """The kinds of items to read: a box of a tensor, or a value that is no tensor."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """The length of a value, where it is known."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A box of a tensor of the shape `size`."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: _C.Size


@dataclass(frozen=True)
class WriteItem:
    """One piece to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: Optional[BytesIOWriteData] = None
    tensor_data: Optional[TensorWriteData] = None

    def tensor_storage_size(self) -> Optional[int]:
        """The bytes of the whole tensor; None for what is no tensor."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One box to read: `lengths` elements from `storage_offsets` of the piece `storage_index` to
    `dest_offsets` of the piece `dest_index` of the state dictionary."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: _C.Size
    storage_index: MetadataIndex
    storage_offsets: _C.Size
    lengths: _C.Size


@dataclass(frozen=True)
class SavePlan:
    """The items that one process writes. A plan that is not `usable` stands for the one of the
    last save."""

    items: List[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """The items that one process reads."""

    items: List[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Plans a save, in this order: set_up_planner() and create_local_plan() in every process,
    create_global_plan() in the coordinator, finish_plan() in every process, then resolve_data()
    for each item, perhaps in several threads."""

    @abc.abstractmethod
    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        storage_meta: Optional[StorageMeta] = None,
        is_coordinator: bool = False,
    ) -> None:
        """Keep what is to be saved."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """The items that this process could write."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: List[SavePlan]) -> Tuple[List[SavePlan], Metadata]:
        """The items that each process shall write, and the metadata of the whole."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """The plan of this process, as the coordinator decided."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Union[Tensor, io.BytesIO]:
        """The tensor or the bytes of an item."""


class LoadPlanner(abc.ABC):
    """Plans a load, in this order: set_up_planner() and create_local_plan() in every process,
    create_global_plan() in the coordinator, finish_plan() in every process, then load_bytes(), or
    resolve_tensor() and commit_tensor(), for each item."""

    @abc.abstractmethod
    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        metadata: Optional[Metadata] = None,
        is_coordinator: bool = False,
    ) -> None:
        """Keep what is to be filled."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """The items that this process needs."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: List[LoadPlan]) -> List[LoadPlan]:
        """The items that each process shall read."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """The plan of this process, as the coordinator decided."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Put a value that is no tensor into the state dictionary."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """The place for the bytes of an item, for storage that asks for one."""
        raise NotImplementedError(
            f"resolve_bytes: expected {type(self).__name__} to define it, got none"
        )

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """The place for the elements of an item: a view of the tensor in the state dictionary."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Called when the place is filled."""


__all__ = [
    "BytesIOWriteData",
    "LoadItemType",
    "LoadPlan",
    "LoadPlanner",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "TensorWriteData",
    "WriteItem",
    "WriteItemType",
]
