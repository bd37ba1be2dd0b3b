"""Pipelines on two and four ranks: every schedule trains as one process with the whole batch."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

import treadle
from process_groups import together
from treadle import nn
from treadle.distributed.device_mesh import init_device_mesh
from treadle.distributed.fsdp import fully_shard
from treadle.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleDualPipeV,
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
from treadle.nn.parallel import DistributedDataParallel

BATCH, WIDTH, CLASSES, PARTS, STEPS = 16, 8, 5, 4, 20


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
    "DualPipeV": (ScheduleDualPipeV, 2),
}


FOLDED = (ScheduleZBVZeroBubble, ScheduleDualPipeV)


def _train(rank: int, world: int) -> Dict[str, List[float]]:
    """The losses of each schedule, in the rank of the last stage."""
    found = {}
    for name, (kind, local) in SCHEDULES.items():
        count = world * local
        modules = _cut(count)
        parts = max(PARTS, count) if kind is ScheduleDualPipeV else PARTS
        mine = [rank] if local == 1 else [rank, rank + world]
        if kind in FOLDED:
            mine = [rank, count - 1 - rank]
        stages = [PipelineStage(modules[s], s, count, "cpu") for s in mine]
        schedule = kind(stages[0] if local == 1 else stages, parts, loss_fn=F.cross_entropy)
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
                assert output.shape == (BATCH, CLASSES) and len(losses) == parts
                means.append(sum(loss.item() for loss in losses) / parts)
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


def _train_in_two_ways(rank: int, world: int) -> List[str]:
    """Pipelines of two ranks, two of them, each with half of the batch."""
    mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("data", "stages"))
    group, place = mesh["stages"].get_group(), mesh["stages"].get_local_rank()
    share = slice(0, 8) if mesh["data"].get_local_rank() == 0 else slice(8, 16)
    treadle.manual_seed(1)
    x, y = treadle.randn(16, WIDTH), treadle.randn(16, WIDTH)
    done = []
    for kind, local in ((Schedule1F1B, 1), (ScheduleInterleaved1F1B, 2)):
        parts = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(2 * local)]
        for wrap in (
            lambda part: DistributedDataParallel(part, process_group=mesh["data"].get_group()),
            lambda part: fully_shard(part, mesh=mesh["data"]),
        ):
            alone = nn.Sequential(*copy.deepcopy(parts))
            mine = [wrap(copy.deepcopy(parts[s])) for s in range(place, 2 * local, 2)]
            stages = [
                PipelineStage(part, place + 2 * i, 2 * local, "cpu", group=group)
                for i, part in enumerate(mine)
            ]
            schedule = kind(stages[0] if local == 1 else stages, PARTS, F.mse_loss)
            for model in (alone, *mine):
                model.zero_grad()
            given = [x[share]] if place == 0 else []
            schedule.step(*given, target=y[share] if place else None)
            F.mse_loss(alone(x), y).backward()
            for stage, part in zip(stages, mine):
                wanted = alone[stage.stage_index].parameters()
                for parameter, other in zip(part.parameters(), wanted):
                    found = parameter.grad
                    found = found.full_tensor() if hasattr(found, "full_tensor") else found
                    assert treadle.allclose(found, other.grad, atol=1e-6), (kind, type(part))
            done.append(type(mine[0]).__name__)
    return done


def test_stages_are_data_parallel() -> None:
    names = ["DistributedDataParallel", "FSDPSequential"] * 2
    assert together(4, _train_in_two_ways) == [names] * 4


# ---- Tables ----


def test_the_table_is_printed_and_drawn(tmp_path: Path) -> None:
    rows = get_schedule_ops("1f1b", 3, 3)
    assert format_table(dict(enumerate(rows))) == (
        "        Rank 0 Rank 1 Rank 2\n"
        "Step 0: 0F0\n"
        "Step 1: 0F1    1F0\n"
        "Step 2: 0F2    1F1    2F0\n"
        "Step 3:               2B0\n"
        "Step 4:        1B0    2F1\n"
        "Step 5: 0B0    1F2    2B1\n"
        "Step 6:        1B1    2F2\n"
        "Step 7: 0B1           2B2\n"
        "Step 8:        1B2\n"
        "Step 9: 0B2"
    )
    picture = visualize_schedule(rows, str(tmp_path / "1f1b.svg"))
    assert (tmp_path / "1f1b.svg").read_text() == picture
    assert picture.count("<rect") == 18 and "10 steps, idle 40 %" in picture and ">2B1<" in picture
    spaced = get_schedule_ops(ScheduleGPipe, 2, 2, add_spacing=True)
    assert len(spaced[0]) == 3 + 2 * 3 and str(spaced[1][-1]) == "1B1"


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_each_schedule_is_whole_and_ends(ranks: int) -> None:
    for name, (_, local) in SCHEDULES.items():
        for batch in (ranks, 2 * ranks, 4 * ranks):
            if name == "DualPipeV" and batch == ranks:
                continue
            rows = get_schedule_ops(name, ranks, batch)
            check_table(dict(enumerate(rows)), ranks * local, batch)
    # The schedules differ in how long ranks wait, where a backward pass takes two steps.
    idle = {}
    for name in SCHEDULES:
        rows = get_schedule_ops(name, ranks, 2 * ranks, add_spacing=True)
        steps = max(len(row) for row in rows)
        idle[name] = 1 - sum(a is not None for row in rows for a in row) / (steps * ranks)
    assert idle["Interleaved1F1B"] < idle["1F1B"] and idle["ZBVZeroBubble"] < idle["GPipe"], idle


def test_wrong_tables_are_refused() -> None:
    text = [["0F0", "0B0", "0F0"], ["1F0", "1B0"]]
    table = {r: [_Action.from_str(a) for a in row] for r, row in enumerate(text)}
    with pytest.raises(ValueError) as error:
        check_table(table, 2, 1)
    assert str(error.value) == (
        "pipeline: expected one F and one B, or one F, I and W, of stage 0 and microbatch 0, "
        "got 2 F, 1 B, 0 I, 0 W"
    )
    with pytest.raises(ValueError) as error:
        check_table({0: table[0][:2], 1: table[1]}, 1, 1)
    assert str(error.value) == "pipeline: expected actions of 1 stages and 1 microbatches, got 1F0"
    with pytest.raises(RuntimeError) as stuck:
        place_in_time({0: [_Action.from_str("0B0")], 1: [_Action.from_str("1F0")]}, 2)
    assert str(stuck.value) == (
        "pipeline: expected an action that can run, got 0B0, 1F0, which all wait for others"
    )
    with pytest.raises(RuntimeError) as word:
        _Action.from_str("2X0")
    assert str(word.value) == (
        "_Action: expected stage, F, B, I or W, and microbatch, as in 2F0, got '2X0'"
    )
    assert _Action.from_str("") is None and str(_Action.from_str("12W3")) == "12W3"
    with pytest.raises(ValueError, match="Unknown schedule name 'x'. The valid options are"):
        get_schedule_class("x")


# ---- Microbatches ----


def test_batches_are_split_and_joined() -> None:
    x, mask = treadle.arange(12.0).reshape(6, 2), treadle.arange(3)
    args, kwargs = split_args_kwargs_into_chunks((x, 7, [x]), {"mask": mask}, 4)
    assert len(args) == len(kwargs) == 3  # as long as mask
    assert args[1][0].tolist() == [[4.0, 5.0], [6.0, 7.0]] and args[1][1] == 7
    assert args[2][2][0].equal(x[4:]) and kwargs[2]["mask"].tolist() == [2]
    assert merge_chunks(args, (TensorChunkSpec(0), None, [TensorChunkSpec(0)]))[0].equal(x)
    dims = TensorChunkSpec.from_tuple((1,))
    assert str(dims) == "(TensorChunkSpec(1),)"
    args, _ = split_args_kwargs_into_chunks((x,), None, 2, dims)
    assert args[1][0].equal(x[:, 1:]) and merge_chunks(args, dims)[0].equal(x)
    named = TensorChunkSpec.from_dict({"a": 0})
    _, kwargs = split_args_kwargs_into_chunks((), {"a": x}, 6, None, named)
    assert len(kwargs) == 6
    folded = merge_chunks([(1,), (2,), (3,)], (_CustomReducer(10, lambda a, b: a + b),))
    assert folded == (16,)
    with pytest.raises(AssertionError, match="Expected 1, got 2"):
        merge_chunks([(1,), (2,)], (None,))
    with pytest.raises(ValueError) as error:
        split_args_kwargs_into_chunks((x, x), None, 2, dims)
    assert str(error.value) == (
        "split_args_kwargs_into_chunks: expected a spec for each of 2 arguments, got 1"
    )
    with pytest.raises(
        ValueError, match="^Unsupported chunk spec: TensorChunkSpec.1. and value: 7"
    ):
        split_args_kwargs_into_chunks((7,), None, 2, dims)


# ---- Modules in stages ----


class Skipping(nn.Module):
    """Has a value of the first stage in the last one, and an argument that is no tensor."""

    def __init__(self, cuts: bool = True) -> None:
        super().__init__()
        self.cuts = cuts
        self.a, self.b, self.c = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: treadle.Tensor, factor: float = 2.0, bias: Any = None) -> treadle.Tensor:
        first = self.a(x)
        if self.cuts:
            pipe_split()
        second = self.b(first).relu()
        if self.cuts:
            pipe_split()
        if bias is not None:
            second = second + bias
        return self.c(second) + factor * first + x


def test_pipeline_cuts_a_module() -> None:
    x = treadle.randint(0, 11, (4, 5))
    model = _model()
    spec = {"layers.2": SplitPoint.BEGINNING, "layers.3": SplitPoint.END}
    pipe = pipeline(model, (x,), split_spec=spec)
    assert pipe.num_stages == pipe.info().num_stages == 3
    assert pipe(x).equal(model(x))
    names = [name for name, _ in pipe.get_stage_module(1).named_parameters()]
    assert names[0] == "layers.2.norm.weight" and len(names) == 20
    skipping = Skipping()
    x = treadle.randn(3, WIDTH)
    pipe = pipeline(skipping, (x,), {"bias": x})
    assert pipe.num_stages == 3 and "stage 2:\ndef forward" in str(pipe)
    assert pipe(x, bias=x).equal(skipping(x, bias=x))
    assert pipeline(skipping, (x, 3.0))(x).equal(skipping(x, 3.0))


def test_what_pipeline_refuses() -> None:
    shared = nn.Sequential(layer := nn.Linear(2, 2), nn.ReLU(), layer)
    x = treadle.ones(1, 2)
    with pytest.raises(ValueError) as error:
        pipeline(shared, (x,), split_spec={"1": SplitPoint.BEGINNING})
    assert str(error.value) == (
        "pipeline: expected each parameter in one stage, got '0.weight' in stages 0 and 1"
    )
    with pytest.raises(ValueError, match="expected split_spec or split_policy, got both"):
        pipeline(shared, (x,), split_spec={}, split_policy=lambda graph: graph)
    with pytest.raises(ValueError, match="expected a SplitPoint for '1', got 1"):
        pipeline(shared, (x,), split_spec={"1": 1})
    with pytest.raises(AttributeError):
        pipeline(shared, (x,), split_spec={"missing": SplitPoint.END})
    with pytest.raises(ValueError, match=r"expected stage_idx in \[0, 1\), got 1"):
        pipeline(nn.Linear(2, 2), (x,)).get_stage_module(1)


# ---- Steps on two ranks ----


def _raised(function: Callable, *args: Any, **kwargs: Any) -> str:
    try:
        function(*args, **kwargs)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def _many_things(rank: int, world: int, folder: str) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    # A pipe with a value that passes the middle; pre-split parts; the sum as the loss.
    treadle.manual_seed(5)
    whole = Skipping(cuts=False)
    x, y = treadle.randn(6, WIDTH), treadle.randn(6, WIDTH)
    pipe = pipeline(whole, (x[:2],), split_spec={"b": SplitPoint.BEGINNING})
    stage = pipe.build_stage(rank, "cpu")
    seen: List[int] = []

    class Context:
        def __init__(self, info: Any) -> None:
            seen.append(info.microbatch_index)

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: Any) -> None:
            pass

    stage.register_forward_context(Context)
    schedule = Schedule1F1B(stage, 3, lambda a, b, k: ((a - b) ** 2).sum() * k, scale_grads=False)
    parts: Dict[str, Any] = {"arg_mbs": [(part,) for part in x.split(2)]} if rank == 0 else {}
    if rank == 1:
        parts = {"target_mbs": list(y.split(2)), "loss_kwargs": {"k": 0.5}}
    output = schedule.step(**parts)
    alone = Skipping()
    alone.load_state_dict(whole.state_dict())
    wanted_output = alone(x)
    (((wanted_output - y) ** 2).sum() * 0.5).backward()
    wanted = {name: p.grad for name, p in alone.named_parameters()}
    for name, parameter in stage.submod.named_parameters():
        assert treadle.allclose(parameter.grad, wanted[name], atol=1e-5), name
    found["output"] = output is None or treadle.allclose(output, wanted_output, atol=1e-6)
    found["seen"] = list(seen)
    # Forward only, in a mode of its own; no gradient is left.
    with treadle.no_grad():
        again = schedule.eval(*([x] if rank == 0 else []))
        found["no_grad"] = _raised(schedule.step)
    assert again is None or again.equal(output)
    only = _ScheduleForwardOnly(stage, 3)
    shorter = only.step(*([x[:3]] if rank == 0 else []), return_outputs=rank == 1)
    found["short"] = None if shorter is None else list(shorter.shape)
    # Several stages on each rank, few sends at a time, a table from a file.
    parts_of_model = _cut(4)
    stages = [PipelineStage(parts_of_model[s], s, 4, "cpu") for s in (rank, rank + 2)]
    tokens, labels = _batches()[0]
    inter = ScheduleInterleaved1F1B(
        stages, 4, F.cross_entropy, max_outstanding_sends=1, defer_pp_recv=True
    )
    inter._dump_csv(f"{folder}/{rank}.csv")
    loaded = PipelineScheduleMulti(stages, 4, F.cross_entropy)
    found["no table"] = _raised(loaded.step)
    loaded._load_csv(f"{folder}/{rank}.csv")
    assert str(loaded) == str(inter)
    given = [tokens] if rank == 0 else []
    for each in (inter, loaded):
        losses: List[treadle.Tensor] = []
        each.step(*given, target=labels if rank else None, losses=losses, return_outputs=False)
        found.setdefault("loss", []).append([round(loss.item(), 5) for loss in losses])
    # What is refused, before anything is sent.
    linear = nn.Linear(2, 2)
    one = PipelineStage(linear, rank, 2, "cpu")
    found["stage"] = _raised(PipelineStage, linear, 2, 2, "cpu")
    found["ranks"] = _raised(PipelineStage, linear, 0, 1, "cpu")
    found["single"] = _raised(ScheduleGPipe, PipelineStage(linear, rank, 4, "cpu"), 2)
    found["odd"] = _raised(ScheduleLoopedBFS, [PipelineStage(linear, rank, 3, "cpu")], 2)
    found["few"] = _raised(Schedule1F1B, one, 1)
    found["none"] = _raised(ScheduleGPipe, one, 0)
    found["rounds"] = _raised(ScheduleInterleaved1F1B, stages, 5)
    found["two"] = _raised(ScheduleZBVZeroBubble, [one], 2)
    found["dual"] = _raised(ScheduleDualPipeV, [one], 2)
    folded = [PipelineStage(linear, s, 4, "cpu") for s in (rank, 3 - rank)]
    found["dual few"] = _raised(ScheduleDualPipeV, folded, 3)
    found["unshard"] = _raised(ScheduleLoopedBFS, stages, 2, max_active_stages=2)
    part = DistributedDataParallel(nn.Linear(2, 2))
    parallel = [PipelineStage(part, s, 4, "cpu") for s in (rank, rank + 2)]
    found["parallel"] = _raised(ScheduleInterleavedZeroBubble, parallel, 2)
    gpipe = ScheduleGPipe(one, 4, F.mse_loss)
    found["batch"] = _raised(gpipe.step, treadle.ones(6, 2), target=treadle.ones(8))
    found["target"] = _raised(gpipe.step, treadle.ones(8, 2), target=treadle.ones(6))
    found["both"] = _raised(gpipe.step, x, arg_mbs=[])
    found["parts"] = _raised(gpipe.step, arg_mbs=[()])
    found["kind"] = _raised(gpipe.step, kwarg_mbs=[(), (), (), ()])
    found["missing"] = _raised(gpipe.step)
    # A shape other than the declared one, found by the rank that has it.
    declared = PipelineStage(
        nn.Linear(2, 3), rank, 2, "cpu", treadle.empty(1, 2, device="meta"), treadle.empty(1, 3)
    )
    wrong = ScheduleGPipe(declared, 2)
    found["declared"] = _raised(wrong.step, treadle.ones(4, 2)) if rank == 0 else ""
    failing = ScheduleGPipe(PipelineStage(nn.Linear(3, 3), rank, 2, "cpu"), 2)
    found["forward"] = _raised(failing.step, treadle.ones(4, 2)) if rank == 0 else ""
    return found


def test_steps_and_what_they_refuse(tmp_path: Path) -> None:
    first, last = together(2, _many_things, str(tmp_path))
    assert first["output"] and last["output"] and last["seen"] == [0, 1, 2]
    assert first["short"] is None and last["short"] == [3, WIDTH]
    assert first["loss"] == [[], []] and last["loss"][0] == last["loss"][1] and last["loss"][0]
    assert first["no_grad"] == (
        "RuntimeError: step() requires gradients to be enabled for backward computation; "
        "call eval() instead"
    )
    assert first["no table"] == (
        "RuntimeError: PipelineScheduleMulti: expected a table, which _load_csv() reads"
    )
    texts = {
        "stage": "PipelineStage: expected stage_index in [0, 2), got 2",
        "ranks": "PipelineStage: expected at least one stage for each of 2 ranks, got "
        "num_stages = 1",
        "single": "ScheduleGPipe: expected stages [0, 2] of 4 on rank 0 of 2, got [0]",
        "odd": "ScheduleLoopedBFS: expected num_stages to be a multiple of 2 ranks, got 3",
        "few": "Schedule1F1B: expected n_microbatches >= 2, the number of stages, got 1",
        "none": "ScheduleGPipe: expected n_microbatches > 0, got 0",
        "rounds": "ScheduleInterleaved1F1B: expected n_microbatches to be a multiple of 2, the "
        "number of rounds, got 5",
        "two": "ScheduleZBVZeroBubble: expected 2 stages on each rank, got 1",
        "dual": "ScheduleDualPipeV: expected 2 stages on each rank, got 1",
        "dual few": "ScheduleDualPipeV: expected n_microbatches >= 4, the number of stages, got 3",
        "unshard": "ScheduleLoopedBFS: expected max_active_stages = 3, unshard_lookahead = 'full', "
        "defer_reduce_grad_wait = False, as stages unshard themselves, got 2, 'full', False",
        "parallel": "ScheduleInterleavedZeroBubble: expected modules that exchange no gradients, "
        "as their backward pass is in two parts, got DistributedDataParallel",
        "batch": "step: expected dimension 0 of argument 0 to be a multiple of n_microbatches = 4, "
        "got shape [6, 2]",
        "target": "step: expected dimension 0 of target to be a multiple of n_microbatches = 4, "
        "got shape [6]",
        "both": "step: expected arguments, or arg_mbs, kwarg_mbs and target_mbs, got both",
        "parts": "step: expected 4 items of arg_mbs, got 1",
        "missing": "step: expected arguments for the first stage, which is here, got none",
    }
    for name, text in texts.items():
        assert first[name] == f"ValueError: {text}", name
    assert (
        first["kind"] == "TypeError: step: expected each item of kwarg_mbs to be a dict, got tuple"
    )
    assert last["missing"] == (
        "ValueError: step: expected a target for the last stage, which is here, got none"
    )
    assert first["declared"] == (
        "PipeliningMetadataError: stage 0, microbatch 0, inputs: expected float32[1, 2], "
        "got float32[2, 2]"
    )
    assert first["forward"].startswith(
        "RuntimeError: stage 0, microbatch 0: the forward pass of float32[2, 2] failed: "
    )
    assert issubclass(PipeliningMetadataError, RuntimeError)
