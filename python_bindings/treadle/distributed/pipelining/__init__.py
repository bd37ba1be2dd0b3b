"""Pipelines: a module in stages on several ranks, and microbatches that go through them.

stage = PipelineStage(part_of_this_rank, rank, world_size, device)
schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=loss)
schedule.step(x)                       # on the rank of the first stage
schedule.step(target=y)                # on that of the last one
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.distributed.pipelining._IR import (
    Pipe,
    SplitPoint,
    build_stage,
    pipe_split,
    pipeline,
)
from treadle.distributed.pipelining.schedules import (
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    _ScheduleForwardOnly,
)
from treadle.distributed.pipelining.stage import PipelineStage, PipelineStageInfo

__getattr__ = _names.attributes_of(__name__)

__all__ = [
    "Pipe",
    "PipelineStage",
    "PipelineStageInfo",
    "Schedule1F1B",
    "ScheduleDualPipeV",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "SplitPoint",
    "_ScheduleForwardOnly",
    "build_stage",
    "pipe_split",
    "pipeline",
]
