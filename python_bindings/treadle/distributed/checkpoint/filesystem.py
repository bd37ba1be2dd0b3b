"""Checkpoints in a folder: `__{rank}_{number}.distcp` with the pieces that one process wrote, and
`.metadata`, which says where each is.

`.metadata` is written last and takes its name in one step. A save into a folder with a checkpoint
gives its files names that are free, and removes the old files at the end: whenever it is killed,
the folder has the old checkpoint or the new one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
import uuid
import warnings
from enum import Enum
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from treadle import serialization
from treadle._C import Tensor
from treadle.distributed.checkpoint import _metadata_file
from treadle.distributed.checkpoint._files import AnyPath, FileSystem, FileSystemBase, Section
from treadle.distributed.checkpoint._global_plan import chunk_bytes
from treadle.distributed.checkpoint._metadata_file import StorageInfo as _StorageInfo
from treadle.distributed.checkpoint._tasks import done, in_threads
from treadle.distributed.checkpoint.metadata import STATE_DICT_TYPE, Metadata, StorageMeta
from treadle.distributed.checkpoint.planner import (
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from treadle.distributed.checkpoint.staging import BlockingAsyncStager
from treadle.distributed.checkpoint.storage import StorageWriter, WriteResult
from treadle.futures import Future

CURRENT_DCP_VERSION = "1.0.0"
DEFAULT_SUFFIX = ".distcp"
_METADATA = ".metadata"
_OURS = re.compile(r"(__\d+_)\d+\.distcp|(__\d+)?\.metadata\.tmp")


@dataclasses.dataclass
class _StoragePrefix:
    """The beginning of the names of the files of one process."""

    prefix: str


class SerializationFormat(Enum):
    """How pieces are written."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


def _metadata_name(rank: Optional[int]) -> str:
    return _METADATA if rank is None else f"__{rank}{_METADATA}"


def _buckets(count: int, items: List[WriteItem]) -> List[List[WriteItem]]:
    """The items, values first, for so many files of about the same size."""
    buckets: List[List[WriteItem]] = [[] for _ in range(count)]
    sizes = [0] * count
    values = [item for item in items if item.type == WriteItemType.BYTE_IO]
    tensors = [item for item in items if item.type != WriteItemType.BYTE_IO]
    for place, item in enumerate(values):
        buckets[place % count].append(item)
    for item in sorted(tensors, key=chunk_bytes, reverse=True):
        smallest = sizes.index(min(sizes))
        buckets[smallest].append(item)
        sizes[smallest] += chunk_bytes(item)
    return buckets if count == 1 else [bucket for bucket in buckets if bucket]


def _compact(tensor: Tensor) -> Tensor:
    """The tensor on the CPU, over memory that holds nothing else."""
    tensor = tensor.detach().cpu()
    whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return tensor if whole else tensor.clone()


class FileSystemWriter(StorageWriter, BlockingAsyncStager):
    """Writes a checkpoint to the folder `path`.

    single_file_per_rank: False for one file for each piece.
    sync_files: whether files are brought to the disk before the checkpoint is valid.
    thread_count: the threads, and files, of each process.
    cache_staged_state_dict: whether the copies that async_save() makes are kept for the next one.
    overwrite: False to raise RuntimeError where the folder has a checkpoint.
    """

    def __init__(
        self,
        path: AnyPath,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Optional[Sequence[Any]] = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:
        if thread_count < 1:
            raise ValueError(f"FileSystemWriter: expected thread_count > 0, got {thread_count}")
        if _extensions:
            raise ValueError(
                f"FileSystemWriter: expected no _extensions, got {len(_extensions)}; pieces are "
                "written as they are"
            )
        if serialization_format != SerializationFormat.TORCH_SAVE:
            raise ValueError(
                "FileSystemWriter: expected serialization_format to be TORCH_SAVE, got "
                f"{serialization_format}"
            )
        BlockingAsyncStager.__init__(self, cache_staged_state_dict)
        self.fs: FileSystemBase = FileSystem()
        self.path = self.fs.init_path(path)
        self.single_file_per_rank = single_file_per_rank
        self.sync_files = sync_files
        self.thread_count = thread_count
        self.per_thread_copy_ahead = per_thread_copy_ahead
        self.overwrite = overwrite
        self.save_id = str(uuid.uuid4())
        self.rank: Optional[int] = None
        self.use_collectives = True

    def reset(self, checkpoint_id: Union[str, os.PathLike, None] = None) -> None:
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.is_coordinator = is_coordinator
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)

    def _own_metadata(self) -> str:
        return _metadata_name(None if self.use_collectives else self.rank)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        self.fs.mkdir(self.path)
        if self.fs.exists(self.fs.concat_path(self.path, self._own_metadata())):
            if not self.overwrite:
                raise RuntimeError(
                    f"save: expected no checkpoint in {self.path} where overwrite=False, got one"
                )
            warnings.warn(
                f"save: the checkpoint in {self.path} is replaced; overwrite=False refuses that",
                stacklevel=2,
            )
        if self.use_collectives or self.rank is None:
            return plan
        return dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{self.rank}_"))

    def prepare_global_plan(self, plans: List[SavePlan]) -> List[SavePlan]:
        return [
            dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{rank}_"))
            if plan.storage_data is None
            else plan
            for rank, plan in enumerate(plans)
        ]

    def _names_there(self) -> List[str]:
        try:
            return [os.path.basename(path) for path in self.fs.ls(self.path)]
        except NotImplementedError:
            return []

    def _free_names(self, prefix: str, count: int) -> List[str]:
        """Names that no file of the checkpoint in the folder has."""
        taken, number = set(self._names_there()), 0
        found: List[str] = []
        while len(found) < count:
            name = f"{prefix}{number}{DEFAULT_SUFFIX}"
            if name not in taken:
                found.append(name)
            number += 1
        return found

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[List[WriteResult]]:
        if self.single_file_per_rank:
            buckets = _buckets(self.thread_count, plan.items)
        else:
            buckets = [[item] for item in plan.items]
        names = self._free_names(plan.storage_data.prefix, len(buckets))
        tasks = [(planner, part) for part in zip(names, buckets)]
        written = in_threads(self.thread_count, self._write_file, tasks)
        return done([result for results in written for result in results])

    def _write_file(
        self, planner: SavePlanner, part: Tuple[str, List[WriteItem]]
    ) -> List[WriteResult]:
        name, items = part
        with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
            results = [self._write_item(planner, stream, name, item) for item in items]
            self._sync(stream)
        return results

    def _write_item(
        self, planner: SavePlanner, stream: Any, name: str, item: WriteItem
    ) -> WriteResult:
        data, begin = planner.resolve_data(item), stream.tell()
        if isinstance(data, Tensor):
            serialization.save(_compact(data), Section(stream, begin))  # type: ignore[arg-type]
        elif isinstance(data, io.BytesIO):
            stream.write(data.getbuffer())
        else:
            raise TypeError(
                f"save: expected a tensor or io.BytesIO for the key {item.index.fqn!r}, got "
                f"{type(data).__name__}"
            )
        length = stream.tell() - begin
        return WriteResult(item.index, length, _StorageInfo(name, begin, length))

    def _sync(self, stream: Any) -> None:
        if not self.sync_files:
            return
        stream.flush()
        # Streams that are no files have no descriptor.
        with contextlib.suppress(AttributeError, io.UnsupportedOperation):
            os.fsync(stream.fileno())

    def finish(self, metadata: Metadata, results: List[List[WriteResult]]) -> None:
        metadata.version = CURRENT_DCP_VERSION
        metadata.storage_data = {r.index: r.storage_data for part in results for r in part}
        metadata.storage_meta = self.storage_meta()
        name = self._own_metadata()
        temporary = self.fs.concat_path(self.path, name + ".tmp")
        with self.fs.create_stream(temporary, "wb") as stream:
            _metadata_file.dump(metadata, stream)
            self._sync(stream)
        self.fs.rename(temporary, self.fs.concat_path(self.path, name))
        self._remove_others({info.relative_path for info in metadata.storage_data.values()})

    def _remove_others(self, valid: set) -> None:
        """Remove the files of older saves, also of those that were killed. A process that saves
        alone removes its own only."""
        for name in self._names_there():
            match = _OURS.fullmatch(name)
            if match is None or name in valid:
                continue
            if self.use_collectives or name.startswith((f"__{self.rank}_", f"__{self.rank}.")):
                with contextlib.suppress(FileNotFoundError):
                    self.fs.rm_file(self.fs.concat_path(self.path, name))

    def storage_meta(self) -> Optional[StorageMeta]:
        return StorageMeta(checkpoint_id=os.fspath(self.path), save_id=self.save_id)

    @property
    def checkpoint_id(self) -> Union[str, os.PathLike]:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Union[str, os.PathLike]) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)

    def stage(self, state_dict: STATE_DICT_TYPE) -> Dict[str, Any]:
        """The copies that async_save() writes."""
        return super().stage(state_dict)


def __getattr__(name: str) -> Any:
    if name == "FileSystemReader":
        from treadle.distributed.checkpoint import _file_reader

        return _file_reader.FileSystemReader
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "FileSystem",
    "FileSystemBase",
    "FileSystemReader",
    "FileSystemWriter",
    "SerializationFormat",
]
