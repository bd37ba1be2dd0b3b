"""Schedules: in which order the ranks of a pipeline run their stages on the microbatches.

stage = PipelineStage(part, rank, world, "cpu")
schedule = Schedule1F1B(stage, n_microbatches=8, loss_fn=cross_entropy)
if rank == 0:
    schedule.step(x)
elif rank == world - 1:
    losses = []
    output = schedule.step(target=y, losses=losses)
else:
    schedule.step()
optimizer.step()                       # the gradients are those of the mean over the batch
print(schedule)                        # the table: a row for each step, a column for each rank
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple, Type, Union

from treadle.distributed.pipelining import _tables
from treadle.distributed.pipelining._actions import Table
from treadle.distributed.pipelining._schedule import Loss, _PipelineSchedule
from treadle.distributed.pipelining._transport import AHEAD
from treadle.distributed.pipelining.stage import _PipelineStageBase


class PipelineScheduleSingle(_PipelineSchedule):
    """A schedule of one stage on each rank.

    `loss_fn(output, target)` gives the loss of a microbatch; without it a step is forward only.
    `args_chunk_spec`, `kwargs_chunk_spec` say how arguments are split, `output_merge_spec` how
    outputs are joined.

    ValueError unless there are as many stages as ranks.
    """

    def __init__(
        self,
        stage: _PipelineStageBase,
        n_microbatches: int,
        loss_fn: Loss = None,
        args_chunk_spec: Optional[Tuple[Any, ...]] = None,
        kwargs_chunk_spec: Optional[Dict[str, Any]] = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(
            [stage],
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
        )
        self._set_table(self._order())

    def _order(self) -> Table:
        raise NotImplementedError


class ScheduleGPipe(PipelineScheduleSingle):
    """All microbatches forward, then all backward."""

    def _order(self) -> Table:
        return _tables.gpipe(self.pp_group_size, self._n_microbatches)


class _ScheduleForwardOnly(ScheduleGPipe):
    """All microbatches forward. ValueError for a `loss_fn`."""

    def _order(self) -> Table:
        if self._loss_fn is not None:
            raise ValueError("_ScheduleForwardOnly: expected loss_fn = None, got a function")
        return super()._order()


class Schedule1F1B(PipelineScheduleSingle):
    """Forward and backward by turns, so that a rank keeps the activations of at most as many
    microbatches as there are stages from it on. ValueError for fewer microbatches than stages."""

    def _order(self) -> Table:
        if self._n_microbatches < self._num_stages:
            raise ValueError(
                f"Schedule1F1B: expected n_microbatches >= {self._num_stages}, the number of "
                f"stages, got {self._n_microbatches}"
            )
        return _tables.one_forward_one_backward(self.pp_group_size, self._n_microbatches)


class PipelineScheduleMulti(_PipelineSchedule):
    """A schedule of several stages on each rank.

    `stages` are those of this rank: r, r + ranks, and so on; for ZBV and DualPipeV r and its mirror
    image. The other arguments are those of PipelineScheduleSingle.
    `backward_requires_autograd=False` lets step() run without gradient mode. `defer_pp_recv` begins
    a receive only when it is needed; `max_outstanding_sends` is the largest number of messages that
    wait to be sent. The others are for stages whose parameters are sharded: they unshard
    themselves, so only the default is taken.

    ValueError unless the stages of this rank are given.
    """

    _is_folded = False

    def __init__(
        self,
        stages: Sequence[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Loss = None,
        args_chunk_spec: Optional[Tuple[Any, ...]] = None,
        kwargs_chunk_spec: Optional[Dict[str, Any]] = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        defer_pp_recv: bool = False,
        max_active_stages: int = 3,
        unshard_lookahead: Union[str, Tuple[int, ...]] = "full",
        *,
        defer_reduce_grad_wait: bool = False,
        max_outstanding_sends: Optional[int] = None,
    ) -> None:
        name = type(self).__name__
        if (max_active_stages, unshard_lookahead, defer_reduce_grad_wait) != (3, "full", False):
            raise ValueError(
                f"{name}: expected max_active_stages = 3, unshard_lookahead = 'full', "
                f"defer_reduce_grad_wait = False, as stages unshard themselves, got "
                f"{max_active_stages}, {unshard_lookahead!r}, {defer_reduce_grad_wait}"
            )
        if max_outstanding_sends is not None and max_outstanding_sends < 1:
            raise ValueError(
                f"{name}: expected max_outstanding_sends > 0, got {max_outstanding_sends}"
            )
        if not stages:
            raise ValueError(f"{name}: expected at least one stage, got none")
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            args_chunk_spec,
            kwargs_chunk_spec,
            output_merge_spec,
            scale_grads,
            self._is_folded,
        )
        self._requires_grad_mode = backward_requires_autograd
        self._ahead = 0 if defer_pp_recv else AHEAD
        self._most_sends = max_outstanding_sends
        self.n_local_stages = len(stages)
        table = self._order()
        if table:
            self._set_table(table)

    def _order(self) -> Table:
        """The table; here none, as _load_csv() reads one."""
        return {}

    def _per_round(self) -> int:
        """How many microbatches pass together. ValueError where the batch is no multiple."""
        rounds = max(1, self._n_microbatches // self.pp_group_size)
        if self._n_microbatches % rounds:
            raise ValueError(
                f"{type(self).__name__}: expected n_microbatches to be a multiple of {rounds}, the "
                f"number of rounds, got {self._n_microbatches}"
            )
        return self._n_microbatches // rounds


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """Each stage runs all microbatches before the next stage of the rank does ("Breadth-First
    Pipeline Parallelism", arXiv 2211.05953)."""

    def __init__(
        self,
        stages: Sequence[_PipelineStageBase],
        n_microbatches: int,
        loss_fn: Loss = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
        backward_requires_autograd: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(
            stages,
            n_microbatches,
            loss_fn,
            None,
            None,
            output_merge_spec,
            scale_grads,
            backward_requires_autograd,
            **options,
        )

    def _order(self) -> Table:
        return _tables.looped_bfs(self.pp_group_size, self._n_microbatches, self.n_local_stages)


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """Forward and backward by turns, with rounds of microbatches that pass all stages of a rank
    (arXiv 2104.04473). ValueError if the microbatches do not make whole rounds."""

    def _order(self) -> Table:
        return _tables.interleaved(
            self.pp_group_size, self._n_microbatches, self.n_local_stages, self._per_round()
        )


class ScheduleInterleavedZeroBubble(PipelineScheduleMulti):
    """As ScheduleInterleaved1F1B, with a backward pass in two parts: the gradients of the weights
    fill times in which a rank would wait (arXiv 2401.10241, ZB1P)."""

    def _order(self) -> Table:
        return _tables.interleaved_zero_bubble(
            self.pp_group_size, self._n_microbatches, self.n_local_stages, self._per_round()
        )


class ScheduleZBVZeroBubble(PipelineScheduleMulti):
    """Two stages on each rank, in the form of a V, with a backward pass in two parts (arXiv
    2401.10241, section 6). ValueError for another number of stages."""

    _is_folded = True

    def _order(self) -> Table:
        if self.n_local_stages != 2:
            raise ValueError(
                f"ScheduleZBVZeroBubble: expected 2 stages on each rank, got {self.n_local_stages}"
            )
        return _tables.zbv(self.pp_group_size, self._n_microbatches)


class ScheduleDualPipeV(PipelineScheduleMulti):
    """Two stages on each rank, in the form of a V. Forward passes of one stage and backward passes
    of the other go by turns; the backward pass is in two parts at the beginning and the end only
    (DualPipe, arXiv 2412.19437). ValueError for another number of stages, or fewer microbatches
    than stages."""

    _is_folded = True

    def _order(self) -> Table:
        if self.n_local_stages != 2:
            raise ValueError(
                f"ScheduleDualPipeV: expected 2 stages on each rank, got {self.n_local_stages}"
            )
        if self._n_microbatches < self._num_stages:
            raise ValueError(
                f"ScheduleDualPipeV: expected n_microbatches >= {self._num_stages}, the number of "
                f"stages, got {self._n_microbatches}"
            )
        return _tables.dual_pipe_v(self.pp_group_size, self._n_microbatches)


_NAMED: Dict[str, Type[_PipelineSchedule]] = {
    "1F1B": Schedule1F1B,
    "Interleaved1F1B": ScheduleInterleaved1F1B,
    "GPipe": ScheduleGPipe,
    "LoopedBFS": ScheduleLoopedBFS,
    "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
    "PipelineScheduleSingle": PipelineScheduleSingle,
    "PipelineScheduleMulti": PipelineScheduleMulti,
    "ZBVZeroBubble": ScheduleZBVZeroBubble,
    "DualPipeV": ScheduleDualPipeV,
}


def get_schedule_class(schedule_name: str) -> Type[_PipelineSchedule]:
    """The class of a schedule by its name, such as "1F1B", in any case. ValueError for another."""
    for name, found in _NAMED.items():
        if name.lower() == schedule_name.lower():
            return found
    raise ValueError(
        f"Unknown schedule name '{schedule_name}'. The valid options are {list(_NAMED)}"
    )


__all__ = [
    "PipelineScheduleMulti",
    "PipelineScheduleSingle",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "get_schedule_class",
]
