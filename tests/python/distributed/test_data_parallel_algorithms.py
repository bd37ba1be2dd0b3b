"""What goes with DistributedDataParallel: uneven inputs, hooks that compress, averages of models,
optimizers whose state is divided, samplers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pickle
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

import treadle
import treadle.distributed as dist
from process_groups import together
from treadle import nn
from treadle.distributed.algorithms import Join, Joinable, JoinHook
from treadle.distributed.algorithms.ddp_comm_hooks import (
    DDPCommHookType,
    default_hooks,
    powerSGD_hook,
    register_ddp_comm_hook,
)
from treadle.distributed.algorithms.ddp_comm_hooks.ddp_zero_hook import (
    hook_with_zero_step,
    hook_with_zero_step_interleaved,
)
from treadle.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    PostLocalSGDState,
    post_localSGD_hook,
)
from treadle.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from treadle.distributed.algorithms.model_averaging.hierarchical_model_averager import (
    HierarchicalModelAverager,
)
from treadle.distributed.algorithms.model_averaging.utils import get_params_to_average
from treadle.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from treadle.nn.parallel import DistributedDataParallel
from treadle.utils.data.distributed import DistributedSampler

BATCHES = [2, 4]  # of the two processes
ROWS = 4


def data(rank: int) -> List[treadle.Tensor]:
    numbers = np.random.default_rng(rank).standard_normal((BATCHES[rank], ROWS, 5))
    return list(treadle.from_numpy(numbers))


def net() -> nn.Module:
    treadle.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4)).to(treadle.float64)


def values(module: nn.Module) -> List[Any]:
    return [p.detach().numpy().copy() for p in module.parameters()]


def loss(output: treadle.Tensor) -> treadle.Tensor:
    return (output - 1).square().sum()


# ---- in the processes ----


def _join(rank: int, with_zero: bool, **options: Any) -> Any:
    module = net()
    model = DistributedDataParallel(module, bucket_cap_mb=1e-5, **options)
    if with_zero:
        optimizer: Any = ZeroRedundancyOptimizer(model.parameters(), treadle.optim.Adam, lr=0.05)
    else:
        optimizer = treadle.optim.SGD(model.parameters(), lr=0.05)
    block = Join([model, optimizer]) if with_zero else model.join(rank < 5)
    with block:
        for x in data(rank):
            optimizer.zero_grad()
            loss(model(x)).backward()
            optimizer.step()
    return values(module)


def _join_again(rank: int) -> Any:
    """The first process has no inputs in the first epoch, whose first step learns the graph."""
    model = DistributedDataParallel(net(), static_graph=True)
    optimizer = treadle.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        with model.join():
            for x in data(rank) if epoch or rank else []:
                optimizer.zero_grad()
                loss(model(x)).backward()
                optimizer.step()
    return values(model)


def _steps_in_backward(rank: int) -> Any:
    found = []
    for wrap in (hook_with_zero_step, hook_with_zero_step_interleaved):
        for views in (False, True):
            module = net()
            model = DistributedDataParallel(
                module, bucket_cap_mb=1e-5, gradient_as_bucket_view=views
            )
            optimizer = ZeroRedundancyOptimizer(
                model.parameters(), treadle.optim.Adam, overlap_with_ddp=True, lr=0.05
            )
            hook = wrap(default_hooks.allreduce_hook, model, optimizer)
            model.register_comm_hook(None, hook)
            with Join([model, optimizer]):
                for x in data(rank):
                    optimizer.zero_grad()
                    loss(model(x)).backward()
                    optimizer.step()
            found.append(values(module))
    return found


def _divided_by_those_that_go_on(rank: int) -> Any:
    module = net()
    module.register_buffer("seen", treadle.zeros(1))
    model = DistributedDataParallel(module)
    found = []
    with model.join(divide_by_initial_world_size=False):
        for step, x in enumerate(data(rank)):
            model.zero_grad()
            module.seen += 1
            with model.no_sync() if step == 2 else nn.utils.parametrize.cached():
                loss(model(x)).backward()
            found.append(model.module[0].bias.grad.numpy().copy())
    return found, module.seen.item()


def _thrown(rank: int) -> str:
    model = DistributedDataParallel(net())
    with pytest.raises(RuntimeError) as raised, model.join(throw_on_early_termination=True):
        for x in data(rank):
            loss(model(x)).backward()
    return str(raised.value)


class Counter(Joinable):
    """Counts the steps of all processes."""

    class Hook(JoinHook):
        def __init__(self, counter: Counter) -> None:
            self.counter = counter

        def main_hook(self) -> None:
            self.counter.add(0)

        def post_hook(self, is_last_joiner: bool) -> None:
            self.counter.was_last = is_last_joiner

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def add(self, value: int) -> None:
        Join.notify_join_context(self) if value else None
        total = treadle.tensor([value])
        dist.all_reduce(total)
        self.count += int(total.item())

    def join_hook(self, **kwargs: Any) -> JoinHook:
        assert kwargs == {"why": "test"}
        return self.Hook(self)

    join_device = property(lambda self: "cpu")
    join_process_group = property(lambda self: dist.group.WORLD)


def _joinable(rank: int) -> Any:
    counter = Counter()
    with Join([counter], why="test"):
        for _ in range(1 + 3 * rank):
            counter.add(1)
    counter.add(0)  # outside of the block
    return counter.count, counter.was_last


def _hooks(rank: int) -> Dict[str, Any]:
    found = {}
    power = powerSGD_hook.PowerSGDState(None, 1, 2, min_compression_rate=1)
    registers: Dict[str, Callable[[Any], None]] = {
        "half": lambda m: m.register_comm_hook(None, default_hooks.fp16_compress_hook),
        "bf16": lambda m: register_ddp_comm_hook(DDPCommHookType.BF16_COMPRESS, m),
        "wrapper": lambda m: m.register_comm_hook(
            None, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)
        ),
        "wrapped power": lambda m: m.register_comm_hook(
            power, default_hooks.fp16_compress_wrapper(powerSGD_hook.powerSGD_hook)
        ),
        "bytes": lambda m: register_ddp_comm_hook(DDPCommHookType.QUANTIZE_PER_TENSOR, m),
        "bytes of 512": lambda m: register_ddp_comm_hook(DDPCommHookType.QUANTIZE_PER_CHANNEL, m),
        "power": lambda m: register_ddp_comm_hook(DDPCommHookType.POWER_SGD_RANK2, m),
    }
    for name, register in registers.items():
        model = DistributedDataParallel(net(), bucket_cap_mb=1e-4)
        register(model)
        for _ in range(2):
            model.zero_grad()
            loss(model(data(rank)[0])).backward()
        found[name] = [p.grad.numpy().copy() for p in model.parameters()]
    # A rank of 1 loses something, which the next steps make good.
    for batched in (False, True):
        state = powerSGD_hook.PowerSGDState(None, 1, 2, min_compression_rate=1)
        model = DistributedDataParallel(net())
        hook = powerSGD_hook.batched_powerSGD_hook if batched else powerSGD_hook.powerSGD_hook
        model.register_comm_hook(state, hook)
        optimizer, losses = treadle.optim.SGD(model.parameters(), lr=0.01), []
        for _ in range(30):
            optimizer.zero_grad()
            value = loss(model(data(rank)[0]))
            value.backward()
            optimizer.step()
            losses.append(value.item())
        rate, before, after = state.compression_stats()
        assert 1 < rate == before / after and state.iter == 30
        again = pickle.loads(pickle.dumps(state))
        assert again.iter == 30 and again.process_group is dist.group.WORLD
        found["losses", batched] = (losses, values(model))
    model = DistributedDataParallel(net())
    register_ddp_comm_hook(DDPCommHookType.NOOP, model)
    loss(model(data(rank)[0])).backward()
    found["none"] = [p.grad.numpy().copy() for p in model.parameters()]
    return found


def _post_local(rank: int) -> Any:
    alone = [dist.new_group([each]) for each in range(2)][rank]
    model = DistributedDataParallel(net())
    state = PostLocalSGDState(None, alone, 2)
    model.register_comm_hook(state, post_localSGD_hook)
    local = treadle.optim.SGD(model.parameters(), lr=0.05)
    optimizer = PostLocalSGDOptimizer(local, PeriodicModelAverager(period=2, warmup_steps=3))
    found = []
    for step in range(6):
        optimizer.zero_grad()
        loss(model(data(rank)[step % 2])).backward()
        optimizer.step()
        found.append(values(model))
    saved = optimizer.state_dict()
    other = PostLocalSGDOptimizer(local, PeriodicModelAverager(period=2))
    other.load_state_dict(saved)
    with pytest.warns(UserWarning, match="no step of an averager"):
        optimizer.load_state_dict(local.state_dict())
    with pytest.warns(UserWarning, match="a period of 1 sends as much"):
        PeriodicModelAverager(1)
    averager = HierarchicalModelAverager({2: 2})
    averager.average_parameters(model.parameters())
    texts = []
    for call in (
        lambda: PeriodicModelAverager(0),
        lambda: PeriodicModelAverager(2, -1),
        lambda: HierarchicalModelAverager({}),
        lambda: HierarchicalModelAverager({0: 2}),
        lambda: HierarchicalModelAverager({2: 1}),
        lambda: get_params_to_average([3]),
        lambda: powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=1),
    ):
        with pytest.raises((ValueError, TypeError)) as raised:
            call()
        texts.append(str(raised.value))
    return found, saved["step"], other.averager.step, optimizer.averager.step, texts


def _zero(rank: int, as_views: bool) -> Any:
    module = net()
    late = nn.Parameter(treadle.ones(3, dtype=treadle.float64))
    groups = [
        {"params": list(module[0].parameters()), "lr": 0.1},
        {"params": module[2].parameters()},
    ]
    optimizer = ZeroRedundancyOptimizer(
        groups, treadle.optim.Adam, parameters_as_bucket_view=as_views, lr=0.01
    )
    with pytest.raises(RuntimeError) as raised:
        optimizer.state_dict()
    optimizer.add_param_group({"params": [late], "lr": 0.5})
    scheduler = treadle.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

    def step() -> None:
        optimizer.zero_grad()
        (loss(module(data(0)[0])) + late.square().sum()).backward()
        optimizer.step()
        scheduler.step()

    step()
    step()
    optimizer.consolidate_state_dict(to=1)
    saved = optimizer.state_dict() if rank == 1 else None
    step()
    before = values(module)
    # Back to the saved state, in both processes.
    box = [saved]
    dist.broadcast_object_list(box, 1)
    optimizer.load_state_dict(box[0])
    sizes = sum(s["exp_avg"].numel() for s in optimizer.optim.state.values())
    return before, box[0], sizes, str(raised.value), optimizer.param_groups[0]["lr"]


def _all(rank: int, world: int) -> Dict[str, Any]:
    return {
        "join": _join(rank, False),
        "join, views": _join(rank, False, gradient_as_bucket_view=True),
        "join, unused": _join(rank, False, find_unused_parameters=True),
        "join, zero": _join(rank, True),
        "join, static": _join_again(rank),
        "in backward": _steps_in_backward(rank),
        "go on": _divided_by_those_that_go_on(rank),
        "thrown": _thrown(rank),
        "joinable": _joinable(rank),
        "hooks": _hooks(rank),
        "post local": _post_local(rank),
        "zero": _zero(rank, False),
        "zero, views": _zero(rank, True),
    }


@pytest.fixture(scope="module")
def found() -> Dict[str, List[Any]]:
    first, second = together(2, _all)
    return {name: [first[name], second[name]] for name in first}


def same(first: List[Any], second: List[Any]) -> None:
    for a, b in zip(first, second):
        assert a.tobytes() == b.tobytes()


def close(found: List[Any], wanted: List[Any], rtol: float = 1e-5) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def _steps_of_one(kind: Callable) -> List[Any]:
    """A process that ends has gradients of zero."""
    module = net()
    optimizer = kind(module.parameters(), lr=0.05)
    for step in range(max(BATCHES)):
        optimizer.zero_grad()
        here = [data(rank)[step] for rank in range(2) if step < BATCHES[rank]]
        (sum(loss(module(x)) for x in here) / 2).backward()
        optimizer.step()
    return values(module)


def test_uneven_inputs(found: Any) -> None:
    wanted = _steps_of_one(treadle.optim.SGD)
    for case in ("join", "join, views", "join, unused"):
        close(found[case][0], wanted)
        same(*found[case])
    close(found["join, zero"][0], _steps_of_one(treadle.optim.Adam))
    same(*found["join, zero"])
    same(*found["join, static"])
    for mine, other in zip(*found["in backward"]):
        close(mine, _steps_of_one(treadle.optim.Adam))
        same(mine, other)
    (_, seen), (grads, other) = found["go on"]
    assert (seen, other) == (2 + 2, 4)  # buffers are those of the one that went on
    module = net()
    for step, grad in enumerate(grads):
        module.zero_grad()
        here = [data(rank)[step] for rank in range(2) if step < BATCHES[rank]]
        (sum(loss(module(x)) for x in here) / len(here)).backward()
        np.testing.assert_allclose(grad, module[0].bias.grad.numpy(), rtol=1e-5)
    assert found["joinable"] == [(5, False), (5, True)]


def test_uneven_inputs_that_are_mistakes(found: Any) -> None:
    assert found["thrown"] == [
        "Join: expected as many inputs in rank 0 as in the others, got fewer",
        "Join: expected as many inputs in all processes, got fewer in at least one",
    ]
    with pytest.raises(ValueError, match="^Join: expected at least one joinable, got none$"):
        Join([])
    with pytest.raises(AssertionError, match="of object to call Joinable.__init__, got no call$"):
        Join.notify_join_context(object())  # type: ignore[arg-type]


def test_hooks_that_compress(found: Any) -> None:
    first, second = found["hooks"]
    module = net()
    (sum(loss(module(data(rank)[0])) for rank in range(2)) / 2).backward()
    wanted = [p.grad.numpy() for p in module.parameters()]
    largest = max(np.abs(w).max() for w in wanted)
    for name in ("half", "bf16", "wrapper", "wrapped power", "bytes", "bytes of 512", "power"):
        same(first[name], second[name])
        for got, value in zip(first[name], wanted):
            np.testing.assert_allclose(got, value, atol=0.02 * largest, err_msg=name)
    for batched in (False, True):
        losses, parameters = first["losses", batched]
        same(parameters, second["losses", batched][1])
        assert losses[-1] < 0.5 * losses[0]
    assert not np.allclose(first["none"][0], second["none"][0])


def test_post_local_sgd(found: Any) -> None:
    (first, saved, other, reset, texts), (second, *_) = found["post local"]
    equal = [all(np.array_equal(a, b) for a, b in zip(*each)) for each in zip(first, second)]
    assert equal == [True, True, False, True, False, True]
    assert (saved, other, reset) == (6, 6, 0)
    assert texts == [
        "PeriodicModelAverager: expected period >= 1, got 0",
        "PeriodicModelAverager: expected warmup_steps >= 0, got -1",
        "HierarchicalModelAverager: expected period_group_size_dict with a period, got none",
        "HierarchicalModelAverager: expected periods >= 1, got 0",
        "HierarchicalModelAverager: expected the last group to have all 2 processes, got 1",
        "get_params_to_average: expected parameters or groups of an optimizer, got int",
        "PowerSGDState: expected start_powerSGD_iter > 1 with use_error_feedback or warm_start, "
        "got start_powerSGD_iter = 1",
    ]


@pytest.mark.parametrize("case", ["zero", "zero, views"])
def test_an_optimizer_with_divided_state(found: Any, case: str) -> None:
    (first, state, size, text, lr), (second, _, other_size, _, _) = found[case]
    same(first, second)
    module = net()
    late = nn.Parameter(treadle.ones(3, dtype=treadle.float64))
    groups = [
        {"params": list(module[0].parameters()), "lr": 0.1},
        {"params": module[2].parameters()},
    ]
    optimizer = treadle.optim.Adam([*groups, {"params": [late], "lr": 0.5}], lr=0.01)
    scheduler = treadle.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for step in range(3):
        if step == 2:
            wanted = optimizer.state_dict()
            assert state["param_groups"] == wanted["param_groups"]
            assert state["state"].keys() == wanted["state"].keys()
            for number, values_of in wanted["state"].items():
                for name, value in values_of.items():
                    treadle.testing.assert_close(state["state"][number][name], value)
            assert lr == wanted["param_groups"][0]["lr"] == 0.025
        optimizer.zero_grad()
        (loss(module(data(0)[0])) + late.square().sum()).backward()
        optimizer.step()
        scheduler.step()
    close(first, values(module))
    total = sum(p.numel() for p in module.parameters()) + 3
    assert size + other_size == total and abs(size - other_size) < total / 4
    assert text == (
        "ZeroRedundancyOptimizer: expected a call of consolidate_state_dict(to=0) in all processes "
        "before state_dict(), got none"
    )


def test_mistakes_of_an_optimizer_with_divided_state() -> None:
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    name = "ZeroRedundancyOptimizer: expected"
    weight = nn.Parameter(treadle.ones(2))
    try:
        for params, options, message in (
            ([], {}, f"{name} parameters, got none"),
            (weight, {"lr": 0.1}, f"{name} params to be a list of tensors or groups, got a tensor"),
        ):
            with pytest.raises((ValueError, TypeError)) as raised:
                ZeroRedundancyOptimizer(params, treadle.optim.SGD, **options)
            assert str(raised.value) == message
        plain = ZeroRedundancyOptimizer([weight], treadle.optim.SGD)
        overlaps = ZeroRedundancyOptimizer([weight], treadle.optim.SGD, overlap_with_ddp=True)
        model = DistributedDataParallel(nn.Linear(1, 1), find_unused_parameters=True)
        name = "hook_with_zero_step: expected"
        for optimizer, message in (
            (
                plain,
                f"{name} a ZeroRedundancyOptimizer with overlap_with_ddp=True, got one with False",
            ),
            (
                overlaps,
                f"{name} a model whose parameters are all used, got one with "
                "find_unused_parameters or static_graph",
            ),
        ):
            with pytest.raises(ValueError) as raised:
                hook_with_zero_step(default_hooks.allreduce_hook, model, optimizer)
            assert str(raised.value) == message
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize("count", [1, 7, 8])
@pytest.mark.parametrize("drop_last", [False, True])
def test_samplers_divide_a_dataset(count: int, drop_last: bool) -> None:
    world, source = 3, list(range(count))
    for shuffle in (False, True):
        orders = []
        for seed, epoch in ((0, 0), (0, 1), (5, 0), (0, 0)):
            samplers = [
                DistributedSampler(source, world, r, shuffle, seed, drop_last) for r in range(world)
            ]
            for sampler in samplers:
                sampler.set_epoch(epoch)
            parts = [list(sampler) for sampler in samplers]
            assert {len(p) for p in parts} == {len(s) for s in samplers}
            assert len(parts[0]) == (count // world if drop_last else -(-count // world))
            orders.append([part[i] for i in range(len(parts[0])) for part in parts])
        order = orders[0]
        if not shuffle:
            repeated = source * world
            assert order == repeated[: len(order)]
        if not drop_last:
            assert set(order) == set(source) and order == (order[:count] * world)[: len(order)]
        assert orders[0] == orders[3]
        if shuffle and count > 1:
            assert len({tuple(o) for o in orders}) == 3
