"""The reading half of `filesystem`. Each file is read once, from its begin to its end."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import io
import os
import pickle
import uuid
from typing import Any, Dict, List, Optional, Union

from treadle import serialization
from treadle._C import Tensor
from treadle.distributed.checkpoint import _metadata_file
from treadle.distributed.checkpoint._files import AnyPath, FileSystem, FileSystemBase, Section
from treadle.distributed.checkpoint._metadata_file import StorageInfo
from treadle.distributed.checkpoint._tasks import done
from treadle.distributed.checkpoint.filesystem import _metadata_name
from treadle.distributed.checkpoint.metadata import Metadata, StorageMeta
from treadle.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem
from treadle.distributed.checkpoint.planner_helpers import narrow
from treadle.distributed.checkpoint.storage import StorageReader
from treadle.futures import Future


class FileSystemReader(StorageReader):
    """Reads the checkpoint in the folder `path`. No code of its files runs."""

    def __init__(self, path: AnyPath, _extension_registry: Any = None) -> None:
        if _extension_registry is not None:
            raise ValueError(
                "FileSystemReader: expected no _extension_registry, got one; pieces are read as "
                "they are"
            )
        self.fs: FileSystemBase = FileSystem()
        self.path = self.fs.init_path(path)
        self.storage_data: Dict[Any, StorageInfo] = {}
        self.load_id = str(uuid.uuid4())
        self.rank: Optional[int] = None
        self.use_collectives = True

    def reset(self, checkpoint_id: Union[str, os.PathLike, None] = None) -> None:
        self.storage_data = {}
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The metadata. FileNotFoundError where the folder has none, pickle.UnpicklingError for a
        file that is something else."""
        path = self.fs.concat_path(self.path, _metadata_name(kwargs.get("rank")))
        with self.fs.create_stream(path, "rb") as file:
            metadata = _metadata_file.load(file.read(), os.fspath(path))
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        self.is_coordinator = is_coordinator
        self.storage_data = metadata.storage_data
        self.rank = kwargs.get("rank")
        self.use_collectives = kwargs.get("use_collectives", True)

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: List[LoadPlan]) -> List[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the items. RuntimeError for a piece that is not in its file or has another shape."""
        files: Dict[str, Dict[Any, List[ReadItem]]] = {}
        for item in plan.items:
            info = self.storage_data.get(item.storage_index)
            if info is None:
                raise RuntimeError(
                    f"load: expected where {item.storage_index.fqn!r} lies in the metadata of "
                    f"{self.path}, got nothing"
                )
            files.setdefault(info.relative_path, {}).setdefault(item.storage_index, []).append(item)
        for name, pieces in files.items():
            path = self.fs.concat_path(self.path, name)
            with self.fs.create_stream(path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                for index in sorted(pieces, key=lambda index: self.storage_data[index].offset):
                    self._read_piece(file, size, path, pieces[index], planner)
        return done(None)

    def _read_piece(
        self, file: Any, size: int, path: Any, items: List[ReadItem], planner: LoadPlanner
    ) -> None:
        """Read a piece once, for all items that need some of it."""
        index = items[0].storage_index
        info = self.storage_data[index]
        if info.transform_descriptors:
            raise RuntimeError(
                f"load: expected {index.fqn!r} in {path} as it is, got it transformed by "
                f"{str(info.transform_descriptors)[:80]}"
            )
        if info.offset + info.length > size:
            raise RuntimeError(
                f"load: expected {info.length} bytes from {info.offset} on in {path} for "
                f"{index.fqn!r}, got a file of {size} bytes"
            )
        section = io.BufferedReader(Section(file, info.offset, info.length))
        if items[0].type == LoadItemType.BYTE_IO:
            content = section.read()
            for item in items:
                planner.load_bytes(item, io.BytesIO(content))
            return
        try:
            tensor = serialization.load(section, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
            raise RuntimeError(
                f"load: expected a tensor in {path} for {index.fqn!r}, got something else ({error})"
            ) from error
        for item in items:
            self._fill(path, item, tensor, planner)

    def _fill(self, path: Any, item: ReadItem, tensor: Any, planner: LoadPlanner) -> None:
        fqn, least = (
            item.storage_index.fqn,
            [offset + length for offset, length in zip(item.storage_offsets, item.lengths)],
        )
        if not isinstance(tensor, Tensor) or (
            tensor.dim() != len(least) or any(n < m for n, m in zip(tensor.shape, least))
        ):
            got = f"shape {tuple(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor)
            raise RuntimeError(
                f"load: expected a tensor of at least {tuple(least)} in {path} for {fqn!r}, got "
                f"{got}"
            )
        part = narrow(tensor, item.storage_offsets, item.lengths)
        target = planner.resolve_tensor(item).detach()
        if target.shape != part.shape:
            raise RuntimeError(
                f"load: expected a place of shape {tuple(part.shape)} for {fqn!r}, got shape "
                f"{tuple(target.shape)}"
            )
        target.copy_(part)
        planner.commit_tensor(item, target)

    @property
    def checkpoint_id(self) -> Union[str, os.PathLike]:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Union[str, os.PathLike]) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)


__all__ = ["FileSystemReader"]
