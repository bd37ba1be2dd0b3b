"""Loading: each process reads what its part of a state dictionary needs, whichever processes wrote
it.

Either all processes of the group return from load(), or all raise.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import warnings
from typing import Any, Dict, List, Optional, Set, Union

from treadle import distributed as dist
from treadle.distributed.checkpoint._storage_utils import _storage_setup, is_alone, with_known
from treadle.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    _EmptyStateDictLoadPlanner,
)
from treadle.distributed.checkpoint.metadata import Metadata
from treadle.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from treadle.distributed.checkpoint.stateful import Stateful
from treadle.distributed.checkpoint.storage import StorageReader
from treadle.distributed.checkpoint.utils import _DistWrapper

AnyPath = Union[str, os.PathLike, None]


def load(
    state_dict: Dict[str, Any],
    *,
    checkpoint_id: AnyPath = None,
    storage_reader: Optional[StorageReader] = None,
    planner: Optional[LoadPlanner] = None,
    process_group: Optional[dist.ProcessGroup] = None,
    no_dist: bool = False,
) -> None:
    """Fill a state dictionary from a checkpoint: tensors in place, other values by replacing them.
    Objects with `state_dict` and `load_state_dict` methods are asked for their state and given it
    back. All processes of the group call it, with the same keys.

    checkpoint_id: the folder. With a `storage_reader`, what that takes it for.
    no_dist: whether this process loads alone, as it does without a process group.
    Raises CheckpointException in all processes where one fails: for a key that the checkpoint
    lacks, a tensor of another shape, a damaged file.
    """
    reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    states = {}
    for key in sorted(state_dict):
        value = state_dict[key]
        states[key] = value.state_dict() if isinstance(value, Stateful) else value
    _load_state_dict(states, reader, _DistWrapper(process_group, not is_alone(no_dist), 0), planner)
    for key, value in states.items():
        given = state_dict[key]
        if isinstance(given, Stateful):
            given.load_state_dict(value)
        else:
            state_dict[key] = value


def load_state_dict(
    state_dict: Dict[str, Any],
    storage_reader: StorageReader,
    process_group: Optional[dist.ProcessGroup] = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Optional[LoadPlanner] = None,
) -> None:
    """The older name of load()."""
    warnings.warn("load_state_dict: use load() instead", FutureWarning, stacklevel=2)
    storage_reader.reset()
    group = _DistWrapper(process_group, not is_alone(no_dist), coordinator_rank)
    _load_state_dict(state_dict, storage_reader, group, planner)


def _read_metadata(reader: StorageReader, rank: int) -> "tuple[Metadata, bool]":
    """The metadata, and whether it is that of all processes."""
    try:
        return reader.read_metadata(), True
    except FileNotFoundError:
        try:
            return with_known(reader.read_metadata, rank=rank), False
        except FileNotFoundError:
            pass
        raise


def _load_state_dict(
    state_dict: Dict[str, Any],
    storage_reader: StorageReader,
    group: _DistWrapper,
    planner: Optional[LoadPlanner] = None,
) -> None:
    plans = planner or DefaultLoadPlanner()

    def local_step() -> LoadPlan:
        metadata, is_common = _read_metadata(storage_reader, group.rank)
        plans.set_up_planner(state_dict, metadata, group.is_coordinator)
        with_known(
            storage_reader.set_up_storage_reader,
            metadata,
            group.is_coordinator,
            rank=group.rank,
            use_collectives=is_common,
        )
        return storage_reader.prepare_local_plan(plans.create_local_plan())

    def global_step(all_plans: List[LoadPlan]) -> List[LoadPlan]:
        return storage_reader.prepare_global_plan(plans.create_global_plan(all_plans))

    def read(plan: LoadPlan) -> None:
        storage_reader.read_data(plans.finish_plan(plan), plans).wait()

    plan = group.reduce_scatter("plan", local_step, global_step)
    group.all_gather("read", lambda: read(plan))


def _load_state_dict_from_keys(
    keys: Union[Set[str], str, None] = None,
    *,
    checkpoint_id: AnyPath = None,
    storage_reader: Optional[StorageReader] = None,
    process_group: Optional[dist.ProcessGroup] = None,
) -> Dict[str, Any]:
    """A new state dictionary with all that a checkpoint has, or with some keys of it and what is
    below them. Each process gets whole tensors."""
    reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    found: Dict[str, Any] = {}
    wanted = {keys} if isinstance(keys, str) else keys
    group = _DistWrapper(process_group, not is_alone(False), 0)
    _load_state_dict(found, reader, group, _EmptyStateDictLoadPlanner(wanted))
    return found


__all__ = ["load", "load_state_dict"]
