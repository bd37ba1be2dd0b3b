"""Checkpoints in the form of Hugging Face's hub: files of safetensors, which hold tensors alone.

    model-00001-of-00002.safetensors ...      whole tensors
    model.safetensors.index.json              the file of each tensor
    shard-00001-model-00001-of-00001.safetensors ...   the boxes that each process has

A file of boxes says in its header where each begins.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any, Dict, List, Optional, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.distributed.checkpoint._file_reader import FileSystemReader
from treadle.distributed.checkpoint._files import AnyPath
from treadle.distributed.checkpoint._global_plan import mistakes
from treadle.distributed.checkpoint._metadata_file import StorageInfo
from treadle.distributed.checkpoint._tasks import done, in_threads
from treadle.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from treadle.distributed.checkpoint.filesystem import FileSystemWriter, _compact
from treadle.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from treadle.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from treadle.distributed.checkpoint.planner_helpers import narrow
from treadle.distributed.checkpoint.state_dict_loader import _load_state_dict
from treadle.distributed.checkpoint.storage import WriteResult
from treadle.distributed.checkpoint.utils import _DistWrapper
from treadle.futures import Future
from treadle.utils import safetensors

_INDEX = "model.safetensors.index.json"
_SUFFIX = ".safetensors"
_SHARDS = "sharded"  # the folder of the boxes where whole tensors are made of them
_BOXES = "DCP_SHARDING_INFO"  # in a header: where the boxes begin
_BEGIN = "saved_offsets"


def _file_name(number: int, count: int, shard: Optional[int] = None) -> str:
    name = f"model-{number:05}-of-{count:05}{_SUFFIX}"
    return name if shard is None else f"shard-{shard:05}-{name}"


def _write_index(folder: AnyPath, files: Dict[str, str], size: int) -> None:
    """Write which file each tensor is in, and the bytes of all."""
    with open(os.path.join(folder, _INDEX), "w", encoding="utf-8") as file:
        json.dump({"metadata": {"total_size": size}, "weight_map": files}, file, indent=2)


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors to files of safetensors in the folder `path`.

    fqn_to_index_mapping: the file of each tensor, numbered from 1 on; one file without it.
    thread_count: the threads of each process, which write one file at a time.
    save_distributed: whether each process writes the boxes that it has. Otherwise one process
        alone saves whole tensors.
    enable_consolidation: whether whole tensors are made of the boxes, by the coordinator. The boxes
        then are in the folder `sharded` in `path`.
    thread_count_consolidation: the threads that do this.
    """

    def __init__(
        self,
        path: AnyPath,
        fqn_to_index_mapping: Optional[Dict[str, int]] = None,
        thread_count: int = 1,
        save_distributed: bool = False,
        enable_consolidation: bool = False,
        thread_count_consolidation: int = 1,
    ) -> None:
        super().__init__(path, thread_count=thread_count)
        if enable_consolidation and not save_distributed:
            raise ValueError(
                "HuggingFaceStorageWriter: expected save_distributed=True with "
                "enable_consolidation=True, got False"
            )
        if thread_count_consolidation < 1:
            raise ValueError(
                "HuggingFaceStorageWriter: expected thread_count_consolidation > 0, got "
                f"{thread_count_consolidation}"
            )
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed = save_distributed
        self.enable_consolidation = enable_consolidation
        self.thread_count_consolidation = thread_count_consolidation
        self.consolidated_output_path: Optional[AnyPath] = None
        self._divide()

    def _divide(self) -> None:
        if self.enable_consolidation:
            self.consolidated_output_path = self.path
            self.path = self.fs.concat_path(self.path, _SHARDS)

    def reset(self, checkpoint_id: Optional[AnyPath] = None) -> None:
        super().reset(checkpoint_id)
        if checkpoint_id:
            self._divide()

    def _place(self, fqn: str) -> int:
        """The number of the file of a tensor."""
        if self.fqn_to_index_mapping is None:
            return 1
        if fqn not in self.fqn_to_index_mapping:
            raise ValueError(f"save: expected a file for {fqn!r} in fqn_to_index_mapping, got none")
        return self.fqn_to_index_mapping[fqn]

    def _files(self) -> int:
        return max(self.fqn_to_index_mapping.values()) if self.fqn_to_index_mapping else 1

    def prepare_global_plan(self, plans: List[SavePlan]) -> List[SavePlan]:
        writers = sum(bool(plan.items) for plan in plans)
        if writers > 1 and not self.save_distributed:
            raise ValueError(
                "save: expected one process to save where save_distributed=False, got tensors of "
                f"{writers}"
            )
        numbers = [n if self.save_distributed else None for n in range(1, len(plans) + 1)]
        return [
            dataclasses.replace(plan, storage_data={"shard_index": number})
            for plan, number in zip(plans, numbers)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[List[WriteResult]]:
        shard = (plan.storage_data or {}).get("shard_index")
        files: Dict[int, List[WriteItem]] = {}
        for item in plan.items:
            files.setdefault(self._place(item.index.fqn), []).append(item)
        tasks = [
            (planner, _file_name(number, self._files(), shard), items)
            for number, items in files.items()
        ]
        written = in_threads(self.thread_count, self._write_tensors, tasks)
        return done([result for results in written for result in results])

    def _write_tensors(
        self, planner: SavePlanner, name: str, items: List[WriteItem]
    ) -> List[WriteResult]:
        tensors: Dict[str, Tensor] = {}
        begins: Dict[str, Any] = {}
        memories = set()
        for item in items:
            fqn, data = item.index.fqn, planner.resolve_data(item)
            if not isinstance(data, Tensor) or item.tensor_data is None:
                raise ValueError(f"save: expected only tensors, got another value for {fqn!r}")
            if fqn in tensors:
                raise ValueError(f"save: expected one box of {fqn!r} in a process, got several")
            tensor = _compact(data).contiguous()
            memory = tensor.untyped_storage().data_ptr()
            tensors[fqn] = tensor.clone() if memory in memories else tensor
            memories.add(memory)
            begins[fqn] = {_BEGIN: list(item.tensor_data.chunk.offsets)}
        said = {"DCP_VERSION": "1.0", _BOXES: json.dumps(begins), "format": "pt"}
        safetensors.save_file(tensors, self.fs.concat_path(self.path, name), said)
        sizes = [tensors[item.index.fqn].nbytes for item in items]
        return [
            WriteResult(item.index, size, StorageInfo(name, 0, size))
            for item, size in zip(items, sizes)
        ]

    def finish(self, metadata: Metadata, results: List[List[WriteResult]]) -> None:
        if self.save_distributed:
            if self.enable_consolidation:
                self._consolidate()
            return
        written = [result for part in results for result in part]
        files = {result.index.fqn: result.storage_data.relative_path for result in written}
        _write_index(self.path, files, sum(result.size_in_bytes for result in written))

    def _consolidate(self) -> None:
        """Make files of whole tensors of the boxes."""
        folder = self.consolidated_output_path
        assert folder is not None
        known = HuggingFaceStorageReader(self.path).read_metadata().state_dict_metadata
        files: Dict[int, List[str]] = {}
        for fqn in known:
            files.setdefault(self._place(fqn), []).append(fqn)
        tasks = [(folder, number, names) for number, names in files.items()]
        sizes = in_threads(self.thread_count_consolidation, self._write_whole, tasks)
        index = {
            fqn: _file_name(number, self._files())
            for number, names in files.items()
            for fqn in names
        }
        _write_index(folder, index, sum(sizes))

    def _write_whole(self, folder: AnyPath, number: int, names: List[str]) -> int:
        tensors: Dict[str, Tensor] = {}
        reader = HuggingFaceStorageReader(self.path)
        planner = _EmptyStateDictLoadPlanner(set(names), flatten_state_dict=False)
        _load_state_dict(tensors, reader, _DistWrapper(None, False, 0), planner)
        name = _file_name(number, self._files())
        safetensors.save_file(tensors, os.path.join(folder, name), {"format": "pt"})
        return sum(tensor.nbytes for tensor in tensors.values())

    @property
    def metadata_path(self) -> str:
        """The name of the file that says where each tensor is."""
        return _INDEX


def _begins(file: safetensors.safe_open, name: str) -> Dict[str, Tuple[int, ...]]:
    """The offsets of the boxes in a file, by key; empty for a file of whole tensors. ValueError for
    a header that says something else."""
    text = (file.metadata() or {}).get(_BOXES)
    if not text:
        return {}
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"load: expected JSON as {_BOXES} in {name}, got {error}") from None
    found = {}
    for key in file.keys():
        entry = said.get(key) if isinstance(said, dict) else None
        begin = entry.get(_BEGIN) if isinstance(entry, dict) else None
        count = len(file.get_slice(key).get_shape())
        if (
            not isinstance(begin, list)
            or len(begin) != count
            or not all(type(n) is int and n >= 0 for n in begin)
        ):
            raise ValueError(f"load: expected where the box of {key[:80]!r} begins in {name}")
        found[key] = tuple(begin)
    return found


class HuggingFaceStorageReader(FileSystemReader):
    """Reads tensors from the files of safetensors in the folder `path`: whole ones, or the boxes
    that HuggingFaceStorageWriter wrote. `thread_count` threads read a file each."""

    def __init__(self, path: AnyPath, thread_count: int = 1) -> None:
        super().__init__(path)
        if thread_count < 1:
            raise ValueError(
                f"HuggingFaceStorageReader: expected thread_count > 0, got {thread_count}"
            )
        self.thread_count = thread_count

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """The metadata, of the headers of all files. FileNotFoundError where there is none,
        ValueError for boxes that do not fill a tensor."""
        known: Dict[str, Any] = {}
        places: Dict[MetadataIndex, StorageInfo] = {}
        paths = [path for path in sorted(self.fs.ls(self.path)) if path.endswith(_SUFFIX)]
        if not paths:
            raise FileNotFoundError(f"load: expected files of safetensors in {self.path}, got none")
        for path in paths:
            with safetensors.safe_open(path) as file:
                self._add(file, os.path.basename(path), known, places)
        metadata = Metadata(known, storage_data=places)
        wrong = "; ".join(mistakes(metadata, is_shared=True))
        if wrong:
            raise ValueError(f"load: expected boxes that fill each tensor once, got {wrong[:500]}")
        metadata.storage_meta = StorageMeta(load_id=self.load_id)
        return metadata

    def _add(
        self,
        file: safetensors.safe_open,
        name: str,
        known: Dict[str, Any],
        places: Dict[MetadataIndex, StorageInfo],
    ) -> None:
        begins = _begins(file, name)
        for key in file.keys():
            shape, dtype = (
                file.get_slice(key).get_shape(),
                safetensors._TYPES[file.get_slice(key).get_dtype()],
            )
            begin = begins.get(key, (0,) * len(shape))
            saved = known.setdefault(
                key, TensorStorageMetadata(TensorProperties(dtype=dtype), _C.Size(begin), [])
            )
            if saved.properties.dtype != dtype or len(saved.size) != len(shape):
                raise ValueError(f"load: expected boxes of one tensor for {key[:80]!r} in {name}")
            ends = [offset + length for offset, length in zip(begin, shape)]
            saved.size = _C.Size(map(max, saved.size, ends))
            saved.chunks.append(ChunkStorageMetadata(_C.Size(begin), _C.Size(shape)))
            places[MetadataIndex(key, begin)] = StorageInfo(name, 0, 0)

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        files: Dict[str, List[ReadItem]] = {}
        for item in plan.items:
            files.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        tasks = [(planner, name, items) for name, items in files.items()]
        in_threads(self.thread_count, self._read_file, tasks)
        return done(None)

    def _read_file(self, planner: LoadPlanner, name: str, items: List[ReadItem]) -> None:
        with safetensors.safe_open(self.fs.concat_path(self.path, name)) as file:
            for item in items:
                tensor = file.get_tensor(item.storage_index.fqn)
                target = planner.resolve_tensor(item).detach()
                target.copy_(narrow(tensor, item.storage_offsets, item.lengths))
                planner.commit_tensor(item, target)


__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]
