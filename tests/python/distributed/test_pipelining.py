"""Pipelines on two and four ranks: every schedule trains as one process with the whole batch."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import multiprocessing
import socket
import traceback
from datetime import timedelta
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

import treadle
import treadle.distributed as dist
from treadle import nn
from treadle.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    SplitPoint,
    _ScheduleForwardOnly,
    pipe_split,
    pipeline,
)
from treadle.distributed.pipelining._actions import (
    _Action,
    check_table,
    format_table,
    place_in_time,
)
from treadle.distributed.pipelining._schedule_visualizer import get_schedule_ops, visualize_schedule
from treadle.distributed.pipelining._shapes import PipeliningMetadataError
from treadle.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    _CustomReducer,
    merge_chunks,
    split_args_kwargs_into_chunks,
)
from treadle.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class
from treadle.nn import functional as F

BATCH, WIDTH, CLASSES, PARTS, STEPS = 16, 8, 5, 4, 20


def _child(function: Callable, rank: int, world: int, url: str, args: tuple, results: Any) -> None:
    try:
        treadle.set_num_threads(1)
        dist.init_process_group("gloo", url, timedelta(seconds=30), world, rank)
        result = function(rank, world, *args)
        dist.destroy_process_group()
        results.put((rank, result, None))
    except BaseException:
        results.put((rank, None, traceback.format_exc()))


def together(world: int, function: Callable, *args: Any) -> List[Any]:
    """The result of the function in each of so many processes of a group."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [
        context.Process(target=_child, args=(function, rank, world, url, args, results))
        for rank in range(world)
    ]
    try:
        for process in processes:
            process.start()
        found = [results.get(timeout=60) for _ in processes]
    finally:
        for process in processes:
            process.join(5)
            process.kill()
    errors = [text for _, _, text in found if text]
    assert not errors, "\n".join(errors)
    return [result for _, result, _ in sorted(found, key=lambda entry: entry[0])]


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.mixed = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Linear(WIDTH, 2 * WIDTH)
        self.narrow = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        q, k, v = self.mixed(self.norm(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v))
        return x + self.narrow(F.gelu(self.wide(x)))


class Model(nn.Module):
    """A small transformer over sequences of numbers."""

    def __init__(self, layers: int = 6) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, WIDTH)
        self.layers = nn.ModuleList([Block() for _ in range(layers)])
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(1))


class Mean(nn.Module):
    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        return x.mean(1)


def _model() -> Model:
    treadle.manual_seed(3)
    return Model()


def _cut(stages: int) -> List[nn.Sequential]:
    """The model in so many parts."""
    model = _model()
    rows = [model.embed, *model.layers, Mean(), model.head]
    ends = [round(i * len(rows) / stages) for i in range(stages + 1)]
    return [nn.Sequential(*rows[a:b]) for a, b in zip(ends, ends[1:])]


def _batches() -> List[Any]:
    treadle.manual_seed(4)
    inputs = [treadle.randint(0, 11, (BATCH, 5)) for _ in range(STEPS)]
    return [(x, x.sum(1) % 2) for x in inputs]


def _alone() -> List[float]:
    """The losses of one process."""
    model = _model()
    optimizer = treadle.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for x, y in _batches():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


SCHEDULES: Dict[str, Any] = {
    "GPipe": (ScheduleGPipe, 1),
    "1F1B": (Schedule1F1B, 1),
    "LoopedBFS": (ScheduleLoopedBFS, 2),
    "Interleaved1F1B": (ScheduleInterleaved1F1B, 2),
    "InterleavedZeroBubble": (ScheduleInterleavedZeroBubble, 2),
    "ZBVZeroBubble": (ScheduleZBVZeroBubble, 2),
}


def _train(rank: int, world: int) -> Dict[str, List[float]]:
    """The losses of each schedule, in the rank of the last stage."""
    found = {}
    for name, (kind, local) in SCHEDULES.items():
        count = world * local
        modules = _cut(count)
        mine = [rank] if local == 1 else [rank, rank + world]
        if kind is ScheduleZBVZeroBubble:
            mine = [rank, count - 1 - rank]
        stages = [PipelineStage(modules[s], s, count, "cpu") for s in mine]
        schedule = kind(stages[0] if local == 1 else stages, PARTS, loss_fn=F.cross_entropy)
        optimizer = treadle.optim.SGD(
            [p for s in stages for p in s.submod.parameters()], lr=0.1, momentum=0.9
        )
        means = []
        for x, y in _batches():
            optimizer.zero_grad()
            losses: List[treadle.Tensor] = []
            output = schedule.step(
                *([x] if 0 in mine else []),
                target=y if count - 1 in mine else None,
                losses=losses,
            )
            optimizer.step()
            if count - 1 in mine:
                assert output.shape == (BATCH, CLASSES) and len(losses) == PARTS
                means.append(sum(loss.item() for loss in losses) / PARTS)
            else:
                assert output is None and not losses
        if means:
            found[name] = means
    return found


@pytest.mark.parametrize("world", [2, 4])
def test_all_schedules_train_as_one_process(world: int) -> None:
    alone = _alone()
    assert alone[-1] < alone[0] - 0.05
    found: Dict[str, List[float]] = {}
    for part in together(world, _train):
        found.update(part)
    assert sorted(found) == sorted(SCHEDULES)
    for name, losses in found.items():
        assert losses == pytest.approx(alone, abs=1e-5), name
