"""Checkpoints of several files as one file of save(), and back."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Union

from treadle import _C, serialization
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.distributed.checkpoint._file_reader import FileSystemReader
from treadle.distributed.checkpoint._nested_dict import flatten_state_dict
from treadle.distributed.checkpoint._tasks import done
from treadle.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    _EmptyStateDictLoadPlanner,
)
from treadle.distributed.checkpoint.filesystem import FileSystemWriter
from treadle.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from treadle.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner
from treadle.distributed.checkpoint.planner_helpers import _whole, narrow
from treadle.distributed.checkpoint.state_dict_loader import _load_state_dict
from treadle.distributed.checkpoint.state_dict_saver import _save_state_dict
from treadle.distributed.checkpoint.storage import StorageReader
from treadle.distributed.checkpoint.utils import _DistWrapper
from treadle.futures import Future

AnyPath = Union[str, os.PathLike]


def dcp_to_torch_save(dcp_checkpoint_dir: AnyPath, torch_save_path: AnyPath) -> None:
    """Write the checkpoint in a folder to one file, with whole tensors, in this process alone."""
    state_dict: Dict[str, Any] = {}
    group = _DistWrapper(None, False, 0)
    reader = FileSystemReader(dcp_checkpoint_dir)
    _load_state_dict(state_dict, reader, group, _EmptyStateDictLoadPlanner())
    serialization.save(state_dict, torch_save_path)


def torch_save_to_dcp(torch_save_path: AnyPath, dcp_checkpoint_dir: AnyPath) -> None:
    """Write the state dictionary in a file to a folder, in this process alone."""
    state_dict = serialization.load(torch_save_path, map_location="cpu")
    group = _DistWrapper(None, False, 0)
    _save_state_dict(state_dict, FileSystemWriter(dcp_checkpoint_dir), group)


class BroadcastingTorchSaveReader(StorageReader):
    """Reads a file of save() in one process, which sends each tensor to all. Goes with
    DynamicMetaLoadPlanner:

    load(state_dict, storage_reader=BroadcastingTorchSaveReader(),
         planner=DynamicMetaLoadPlanner(), checkpoint_id="model.pt")
    """

    def __init__(
        self, checkpoint_id: Union[str, os.PathLike, None] = None, coordinator_rank: int = 0
    ) -> None:
        self.checkpoint_id = checkpoint_id
        self.coordinator_rank = coordinator_rank

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Metadata of no keys: the planner takes them from the state dictionary."""
        return Metadata({})

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the file, and send each tensor."""
        assert isinstance(planner, DefaultLoadPlanner)
        saved: Any = None
        if self.is_coordinator:
            saved = serialization.load(self.checkpoint_id, map_location="cpu")  # type: ignore[arg-type]
            if planner.flatten_state_dict:
                saved, _ = flatten_state_dict(saved)
        for item in plan.items:
            fqn = item.storage_index.fqn
            if item.type == LoadItemType.BYTE_IO:
                raise RuntimeError(
                    f"BroadcastingTorchSaveReader: expected only tensors, got another value for "
                    f"{fqn!r}"
                )
            wanted = planner.state_dict[fqn]
            if self.is_coordinator:
                tensor = saved[fqn].detach().contiguous()
            else:
                tensor = _C.empty(tuple(wanted.shape), dtype=wanted.dtype)
            dist.broadcast(tensor, src=self.coordinator_rank)
            target = planner.resolve_tensor(item).detach()
            target.copy_(narrow(tensor, item.storage_offsets, item.lengths))
            planner.commit_tensor(item, target)
        return done(None)

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        """Get ready. ValueError without a file."""
        if self.checkpoint_id is None:
            raise ValueError("BroadcastingTorchSaveReader: expected checkpoint_id, got None")
        self.metadata = metadata
        self.is_coordinator = is_coordinator

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: List[LoadPlan]) -> List[LoadPlan]:
        return plans

    def reset(self, checkpoint_id: Union[str, os.PathLike, None] = None) -> None:
        if checkpoint_id is not None:
            self.checkpoint_id = checkpoint_id

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: AnyPath) -> bool:
        return os.path.isfile(checkpoint_id)


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Takes the metadata from the state dictionary that is to be filled, for files without any."""

    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        metadata: Optional[Metadata] = None,
        is_coordinator: bool = False,
    ) -> None:
        super().set_up_planner(state_dict, metadata, is_coordinator)
        known: Any = {}
        for key, tensor in self.state_dict.items():
            if not isinstance(tensor, Tensor):
                raise RuntimeError(
                    f"DynamicMetaLoadPlanner: expected only tensors, got {type(tensor).__name__} "
                    f"for {key!r}"
                )
            properties = TensorProperties(dtype=tensor.dtype)
            chunks = [_whole(tensor)]
            known[key] = TensorStorageMetadata(properties, _C.Size(tensor.shape), chunks)
        self.metadata = Metadata(known)


__all__ = [
    "BroadcastingTorchSaveReader",
    "DynamicMetaLoadPlanner",
    "dcp_to_torch_save",
    "torch_save_to_dcp",
]
