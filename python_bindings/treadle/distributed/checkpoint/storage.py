"""The interface of a storage, files or something else, for saves and loads of the package."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
import os
from dataclasses import dataclass
from typing import Any, List, Optional, Union

from treadle.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from treadle.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from treadle.futures import Future


@dataclass(frozen=True)
class WriteResult:
    """A piece that is written: its length in bytes, and what the storage needs to find it."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes a checkpoint, in this order: reset(), set_up_storage_writer() and prepare_local_plan()
    in every process, prepare_global_plan() in the coordinator, write_data() in every process, and
    finish() in the coordinator."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: Union[str, os.PathLike, None] = None) -> None:
        """Begin a save, to another place if one is given."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Get ready. `rank` and `use_collectives` are given to those that take `kwargs`."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Add to the plan of this process what the storage needs."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: List[SavePlan]) -> List[SavePlan]:
        """Add to the plans of all what the storage needs."""

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[List[WriteResult]]:
        """Write the items of a plan, whose data `planner.resolve_data` has."""

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: List[List[WriteResult]]) -> None:
        """Make the checkpoint valid. `results` are those of all processes."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: Union[str, os.PathLike]) -> bool:
        """Whether a checkpoint can be written to a place."""

    def storage_meta(self) -> Optional[StorageMeta]:
        """The facts of the storage that the metadata keeps."""
        return None


class StorageReader(abc.ABC):
    """Reads a checkpoint, in this order: reset(), read_metadata(), set_up_storage_reader() and
    prepare_local_plan() in every process, prepare_global_plan() in the coordinator, and read_data()
    in every process."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: Union[str, os.PathLike, None] = None) -> None:
        """Begin a load, from another place if one is given."""

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The metadata of the checkpoint. With `rank`, that of what one process wrote alone."""

    @abc.abstractmethod
    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Get ready. `rank` and `use_collectives` are given to those that take `kwargs`."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Add to the plan of this process what the storage needs."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: List[LoadPlan]) -> List[LoadPlan]:
        """Add to the plans of all what the storage needs."""

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the items of a plan into the places that the planner gives."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: Union[str, os.PathLike]) -> bool:
        """Whether a checkpoint can be read from a place."""


__all__ = ["StorageReader", "StorageWriter", "WriteResult"]
