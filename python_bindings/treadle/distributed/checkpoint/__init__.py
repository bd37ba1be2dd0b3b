"""Checkpoints that several processes write and read together.

    save({"model": model, "optimizer": optimizer}, checkpoint_id="step_100")
    load({"model": model, "optimizer": optimizer}, checkpoint_id="step_100")

A checkpoint is a folder in PyTorch's format. It loads into another number of processes, or another
placement of the tensors, than it was saved from.
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.distributed.checkpoint._file_reader import FileSystemReader
from treadle.distributed.checkpoint.api import CheckpointException
from treadle.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from treadle.distributed.checkpoint.filesystem import FileSystemWriter
from treadle.distributed.checkpoint.fsspec_filesystem import FsspecReader, FsspecWriter
from treadle.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)
from treadle.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
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
from treadle.distributed.checkpoint.state_dict_loader import load, load_state_dict
from treadle.distributed.checkpoint.state_dict_saver import async_save, save, save_state_dict
from treadle.distributed.checkpoint.storage import StorageReader, StorageWriter

__getattr__ = _names.attributes_of(__name__)

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "FsspecReader",
    "FsspecWriter",
    "HuggingFaceStorageReader",
    "HuggingFaceStorageWriter",
    "LoadPlan",
    "LoadPlanner",
    "Metadata",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "StorageReader",
    "StorageWriter",
    "TensorStorageMetadata",
    "WriteItem",
    "async_save",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
]
