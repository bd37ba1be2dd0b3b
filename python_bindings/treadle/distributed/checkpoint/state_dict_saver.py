"""Saving: each process writes its part of a state dictionary.

Either all processes of the group return from save() with a valid checkpoint, or all raise.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import threading
import warnings
import weakref
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import Any, Callable, Dict, List, Optional, Union

from treadle import distributed as dist
from treadle.distributed.checkpoint._storage_utils import _storage_setup, is_alone, with_known
from treadle.distributed.checkpoint.default_planner import DefaultSavePlanner
from treadle.distributed.checkpoint.metadata import STATE_DICT_TYPE, Metadata
from treadle.distributed.checkpoint.planner import SavePlan, SavePlanner
from treadle.distributed.checkpoint.staging import AsyncStager, DefaultStager
from treadle.distributed.checkpoint.stateful import Stateful
from treadle.distributed.checkpoint.storage import StorageWriter, WriteResult
from treadle.distributed.checkpoint.utils import _DistWrapper

AnyPath = Union[str, os.PathLike, None]


class AsyncCheckpointerType(Enum):
    """The writer of async_save(): a thread, or a process, which the first such save starts."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """The result of async_save() where the copy is made beside the program, too: futures of the
    copy and of the checkpoint."""

    staging_completion: Future
    upload_completion: Future


def _stateful_to_state_dict(state_dict: STATE_DICT_TYPE) -> Dict[str, Any]:
    return {k: v.state_dict() if isinstance(v, Stateful) else v for k, v in state_dict.items()}


def save(
    state_dict: STATE_DICT_TYPE,
    *,
    checkpoint_id: AnyPath = None,
    storage_writer: Optional[StorageWriter] = None,
    planner: Optional[SavePlanner] = None,
    process_group: Optional[dist.ProcessGroup] = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Save a state dictionary. All processes of the group call it; each writes the boxes that it
    has of DTensors, and some of what all have. Objects with a `state_dict` method are asked for it.

    checkpoint_id: the folder. With a `storage_writer`, what that takes it for.
    no_dist: whether this process saves alone, as it does without a process group.
    use_collectives: False for a checkpoint in which each process has metadata of its own,
        `__{rank}.metadata`; nothing is written once only, and only the same processes load it.
    Raises CheckpointException in all processes where one fails. A checkpoint that was in the folder
    stays valid until the new one is.
    """
    writer = _storage_setup(storage_writer, checkpoint_id)
    states = _stateful_to_state_dict(state_dict)
    group = _DistWrapper(process_group, not is_alone(no_dist), 0)
    return _save_state_dict(states, writer, group, planner, use_collectives)


def save_state_dict(
    state_dict: STATE_DICT_TYPE,
    storage_writer: StorageWriter,
    process_group: Optional[dist.ProcessGroup] = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: Optional[SavePlanner] = None,
) -> Metadata:
    """The older name of save()."""
    warnings.warn("save_state_dict: use save() instead", FutureWarning, stacklevel=2)
    storage_writer.reset()
    group = _DistWrapper(process_group, not is_alone(no_dist), coordinator_rank)
    return _save_state_dict(state_dict, storage_writer, group, planner)


def _save_state_dict(
    state_dict: STATE_DICT_TYPE,
    storage_writer: StorageWriter,
    group: _DistWrapper,
    planner: Optional[SavePlanner] = None,
    use_collectives: bool = True,
) -> Metadata:
    plans = planner or DefaultSavePlanner()
    found: List[Metadata] = []  # in the coordinator, and in all without collectives

    def local_step() -> SavePlan:
        with_known(
            plans.set_up_planner,
            state_dict,
            storage_meta=storage_writer.storage_meta(),
            is_coordinator=group.is_coordinator,
        )
        with_known(
            storage_writer.set_up_storage_writer,
            group.is_coordinator,
            rank=group.rank,
            use_collectives=use_collectives,
        )
        return storage_writer.prepare_local_plan(plans.create_local_plan())

    def global_step(all_plans: List[SavePlan]) -> List[SavePlan]:
        all_plans, metadata = plans.create_global_plan(all_plans)
        found.append(metadata)
        return storage_writer.prepare_global_plan(all_plans)

    def write(plan: SavePlan) -> List[WriteResult]:
        return storage_writer.write_data(plans.finish_plan(plan), plans).wait()

    def finish(results: List[List[WriteResult]]) -> Metadata:
        storage_writer.finish(found[0], results)
        return found[0]

    if use_collectives:
        plan = group.reduce_scatter("plan", local_step, global_step)
        return group.all_reduce("write", lambda: write(plan), finish)
    return group.all_gather("write", lambda: finish([write(global_step([local_step()])[0])]))[
        group.rank
    ]


_background: Any = weakref.WeakKeyDictionary()


def _background_group(group: Optional[dist.ProcessGroup]) -> Optional[dist.ProcessGroup]:
    """A group of the same processes for a thread, whose messages do not mix with the program's."""
    given = dist.group.WORLD if group is None else group
    if given not in _background:
        ranks = dist.get_process_group_ranks(given)
        _background[given] = dist.new_group(ranks, use_local_synchronization=True)
    return _background[given]


def _saver(
    kind: AsyncCheckpointerType,
    process_group: Optional[dist.ProcessGroup],
    alone: bool,
    writer: StorageWriter,
    planner: Optional[SavePlanner],
    use_collectives: bool,
) -> Callable[[Any], Metadata]:
    """The function that saves a copy of the state."""
    if kind == AsyncCheckpointerType.PROCESS:
        from treadle.distributed.checkpoint import _background_process

        group = None if alone else process_group or dist.group.WORLD
        save_there = _background_process.saver_of(group)
        return lambda states: save_there(
            _background_process._Request(states, writer, planner, use_collectives)
        )
    wrapper = _DistWrapper(None if alone else _background_group(process_group), not alone, 0)
    return lambda states: _save_state_dict(states, writer, wrapper, planner, use_collectives)


_last: List[threading.Thread] = []  # the thread of the last task
_beginning = threading.Lock()


def _in_thread(task: Callable[[], Any]) -> Future:
    """The future of a task in a thread that the program waits for before it ends. Tasks run one
    after the other, so that they run in the same order in all processes."""
    future: Future = Future()
    before: List[threading.Thread] = []

    def run() -> None:
        while before:
            before.pop().join()
        try:
            result = task()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    future.set_running_or_notify_cancel()
    with _beginning:
        before += _last
        _last[:] = [threading.Thread(target=run, name="async_save")]
        _last[0].start()
    return future


def async_save(
    state_dict: STATE_DICT_TYPE,
    *,
    checkpoint_id: AnyPath = None,
    storage_writer: Optional[StorageWriter] = None,
    planner: Optional[SavePlanner] = None,
    process_group: Optional[dist.ProcessGroup] = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Optional[AsyncStager] = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Union[Future, AsyncSaveResponse]:
    """Save a copy of the state in a thread: the program may change the state at once. Returns the
    future of the metadata. A save waits for those before it. The other arguments are those of
    save().

    async_checkpointer_type: PROCESS to write in another process. It imports the main module of the
        program, which therefore does its work below `if __name__ == "__main__"`; what is saved, the
        writer and the planner have to be picklable.
    async_stager: makes the copy. Where it returns a future, so that the program has to wait before
        it changes the state, the result is an AsyncSaveResponse.
    """
    if not isinstance(async_checkpointer_type, AsyncCheckpointerType):
        raise ValueError(
            "async_save: expected async_checkpointer_type to be an AsyncCheckpointerType, got "
            f"{async_checkpointer_type!r}"
        )
    writer = _storage_setup(storage_writer, checkpoint_id)
    save_copy = _saver(
        async_checkpointer_type, process_group, is_alone(no_dist), writer, planner, use_collectives
    )
    stager = async_stager
    if stager is None:
        stager = writer if isinstance(writer, AsyncStager) else DefaultStager()
    staged = stager.stage(_stateful_to_state_dict(state_dict))

    def task() -> Metadata:
        states = staged.result() if isinstance(staged, Future) else staged
        return save_copy(states)

    upload = _in_thread(task)
    if isinstance(staged, Future):
        return AsyncSaveResponse(_without_value(staged), upload)
    if stager.should_synchronize_after_execute:
        stager.synchronize_staging()
    return upload


def _without_value(future: Future) -> Future:
    """A future that ends with another, without its value."""
    ended: Future = Future()

    def end(done: Future) -> None:
        error = done.exception()
        if error is None:
            ended.set_result(None)
        else:
            ended.set_exception(error)

    future.add_done_callback(end)
    return ended


__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]
