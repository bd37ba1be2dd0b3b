"""FullyShardedDataParallel: the wrapper class, its policies, and its states."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import os
from typing import Any

import pytest
from test_fully_shard import Block, Model, batches, loss_of, made

import treadle
import treadle.distributed as dist
from process_groups import together
from treadle import nn
from treadle.distributed import checkpoint as dcp
from treadle.distributed.checkpoint.state_dict import get_state_dict, set_state_dict


def _wrapped(model: Any = None, **options: Any) -> Any:
    from treadle.distributed.fsdp import FullyShardedDataParallel
    from treadle.distributed.fsdp.wrap import ModuleWrapPolicy

    options.setdefault("auto_wrap_policy", ModuleWrapPolicy({Block}))
    return FullyShardedDataParallel(model or made(), **options)


def _steps(rank: int, world: int) -> None:
    """Training as in one process, for each strategy."""
    from treadle.distributed.fsdp import FullyShardedDataParallel as FSDP
    from treadle.distributed.fsdp import ShardingStrategy

    alone = made()
    models = [
        _wrapped(sharding_strategy=strategy, forward_prefetch=True)
        for strategy in (
            ShardingStrategy.FULL_SHARD,
            ShardingStrategy.SHARD_GRAD_OP,
            ShardingStrategy.NO_SHARD,
        )
    ]
    everything = [alone, *models]
    steps = [treadle.optim.AdamW(m.parameters(), lr=0.01) for m in everything]
    for number, x in enumerate(batches(6, 2 * world)):
        loss_of(alone, x).backward()
        for model in models:
            if number % 2 == 0:
                with model.no_sync():
                    loss_of(model, x.chunk(world)[rank]).backward()
            else:
                loss_of(model, x.chunk(world)[rank]).backward()
        if number % 2 == 0:
            continue
        norm = nn.utils.clip_grad_norm_(alone.parameters(), 0.1)
        for model in models:
            treadle.testing.assert_close(model.clip_grad_norm_(0.1), norm, rtol=1e-5, atol=1e-5)
        for step in steps:
            step.step()
            step.zero_grad()
    expected = dict(alone.state_dict())
    for model in models:
        assert model.check_is_root() and not model.module.blocks[0].check_is_root()
        assert [n for n, _ in model.named_parameters()] == [n for n, _ in alone.named_parameters()]
        assert len(FSDP.fsdp_modules(model)) == 3 and FSDP.fsdp_modules(model, True) == [model]
        treadle.testing.assert_close(dict(model.state_dict()), expected, rtol=1e-5, atol=1e-5)
    _states(rank, models[0], steps[1], alone)
    _summon(rank, models[0])


def _states(rank: int, model: Any, optimizer: Any, alone: Any) -> None:
    """Whole, sharded and local states of the model and its optimiser."""
    from treadle.distributed.fsdp import (
        FullOptimStateDictConfig,
        FullStateDictConfig,
        ShardedStateDictConfig,
        StateDictType,
    )
    from treadle.distributed.fsdp import FullyShardedDataParallel as FSDP
    from treadle.distributed.tensor import DTensor

    full = dict(model.state_dict())
    first = (FullStateDictConfig(True, True), FullOptimStateDictConfig(True, True))
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, *first):
        mine = model.state_dict()
        assert list(mine) == (list(full) if rank == 0 else [])
        state = FSDP.optim_state_dict(model, optimizer)
        assert bool(state) == (rank == 0)
        loaded = FSDP.optim_state_dict_to_load(model, optimizer, state)
    assert isinstance(loaded["state"][0]["exp_avg"], DTensor)
    before = optimizer.state_dict()["state"]
    for number, values in loaded["state"].items():
        for key, value in values.items():
            expected = before[number][key]
            same = [t.to_local() if isinstance(t, DTensor) else t for t in (value, expected)]
            treadle.testing.assert_close(*same, rtol=0, atol=0)
    optimizer.load_state_dict(loaded)
    gathered = FSDP.full_optim_state_dict(model, optimizer, rank0_only=False)
    assert gathered["state"]["head.weight"]["exp_avg"].shape == (2, 6)
    FSDP.shard_full_optim_state_dict(gathered, model, optim=optimizer)
    FSDP.scatter_full_optim_state_dict(gathered if rank == 0 else None, model, optim=optimizer)
    sharded = FSDP.sharded_optim_state_dict(model, optimizer)
    optimizer.load_state_dict(FSDP.flatten_sharded_optim_state_dict(sharded, model, optimizer))
    with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        pieces = model.state_dict()
        assert list(pieces) == list(full) and isinstance(pieces["head.weight"], DTensor)
    with FSDP.state_dict_type(model, StateDictType.LOCAL_STATE_DICT):
        local = model.state_dict()
        assert local["head.weight"].shape == (1, 6)
        model.load_state_dict(local)
    with treadle.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    for state in (full, pieces):
        model.load_state_dict(state)
    treadle.testing.assert_close(dict(model.state_dict()), full, rtol=0, atol=0)
    with pytest.raises(RuntimeError, match="expected a FullStateDictConfig"):
        FSDP.set_state_dict_type(model, StateDictType.FULL_STATE_DICT, ShardedStateDictConfig())
    states = get_state_dict(model, optimizer)
    assert (
        isinstance(states[0]["head.weight"], treadle.Tensor) and "head.bias" in states[1]["state"]
    )
    set_state_dict(model, optimizer, model_state_dict=states[0], optim_state_dict=states[1])


def _summon(rank: int, model: Any) -> None:
    from treadle.distributed.fsdp import FullyShardedDataParallel as FSDP
    from treadle.distributed.tensor import DTensor

    with FSDP.summon_full_params(model, with_grads=True):
        weight = model.module.blocks[1].module.up.weight
        assert not isinstance(weight, DTensor) and weight.shape == (9, 6)
        with treadle.no_grad():
            weight.fill_(0.5)
    with FSDP.summon_full_params(model, writeback=False, rank0_only=True):
        weight = model.get_parameter("_fsdp_wrapped_module.head.weight")
        assert isinstance(weight, DTensor) == (rank != 0)
        if rank == 0:
            weight.detach().fill_(7.0)
    state = model.state_dict()
    assert state["blocks.1.up.weight"].unique().tolist() == [0.5]
    assert 7.0 not in state["head.weight"]
    with pytest.raises(NotImplementedError, match="expected writeback=False with rank0_only"):
        with FSDP.summon_full_params(model, rank0_only=True):
            pass

    # Functions that are applied see whole parameters of wrappers inside, too; so do blocks inside.
    def fill(module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            assert not isinstance(module.weight, DTensor)
            nn.init.constant_(module.weight, 0.25)

    model.apply(fill)
    inner = model.blocks[0]  # attributes of the module
    with FSDP.summon_full_params(model):
        with FSDP.summon_full_params(inner):
            nn.init.constant_(inner.up.bias, 2.0)
        assert inner.up.bias.tolist() == [2.0] * 9
    state = model.state_dict()
    assert state["blocks.0.up.weight"].unique().tolist() == [0.25]
    assert state["blocks.0.up.bias"].unique().tolist() == [2.0]
    assert model.head.in_features == 6 and not hasattr(model, "tail")


def _policies(rank: int, world: int) -> None:
    from treadle.distributed.fsdp import FullyShardedDataParallel as FSDP
    from treadle.distributed.fsdp import MixedPrecision
    from treadle.distributed.fsdp import wrap as w

    def wrapped_names(policy: Any, model: Any = None) -> list:
        model = FSDP(model or made(), auto_wrap_policy=policy)
        names = (n for n, m in model.named_modules() if isinstance(m, FSDP))
        return sorted(
            {n.replace("_fsdp_wrapped_module", "").replace("..", ".").strip(".") for n in names}
        )

    size = functools.partial(w.size_based_auto_wrap_policy, min_num_params=60)
    assert wrapped_names(size) == ["", "blocks.0", "blocks.0.up", "blocks.1", "blocks.1.up"]
    kinds = functools.partial(w.transformer_auto_wrap_policy, transformer_layer_cls={Block})
    assert wrapped_names(kinds) == ["", "blocks.0", "blocks.1"]
    last = functools.partial(
        w.lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.Linear)
    )
    assert "blocks.1.down" in wrapped_names(last)
    custom = w.CustomPolicy(lambda m: {"forward_prefetch": True} if isinstance(m, Block) else False)
    assert wrapped_names(custom) == ["", "blocks.0", "blocks.1"]
    small = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    assert wrapped_names(w.always_wrap_policy, small) == ["", "0", "1", "1.0"]
    with w.enable_wrap(wrapper_cls=FSDP, forward_prefetch=True):
        assert isinstance(w.wrap(nn.Linear(2, 2)), FSDP)
    assert isinstance(w.wrap(nn.Linear(2, 2)), nn.Linear)

    # Dtypes; normalisation keeps its own. Values of the first process; from the device meta.
    mixed = MixedPrecision(treadle.bfloat16, treadle.float32, treadle.bfloat16)
    layers = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
    with treadle.no_grad():
        layers[0].weight.fill_(rank + 1.0)
    options: dict = {"auto_wrap_policy": w.ModuleWrapPolicy({nn.Linear}), "mixed_precision": mixed}
    model = FSDP(layers, sync_module_states=True, cpu_offload=None, **options)
    y = model(treadle.randn(4, 4))
    assert y.dtype == treadle.bfloat16
    y.float().sum().backward()
    state = model.state_dict()
    assert (
        state["0.weight"].unique().tolist() == [1.0] and state["0.weight"].dtype == treadle.float32
    )
    assert model.module[1].module.running_mean.dtype == treadle.float32
    with treadle.device("meta"):
        empty = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    started: list = []

    def start(module: nn.Module) -> None:
        started.append(type(module))
        module.to_empty(device="cpu", recurse=False)
        nn.init.constant_(module.weight, 0.25)
        nn.init.zeros_(module.bias)

    model = FSDP(empty, param_init_fn=start, auto_wrap_policy=w.always_wrap_policy)
    assert started == [nn.Linear, nn.Linear] and model(treadle.ones(1, 4)).tolist() == [[1.0] * 4]
    ignored = made()
    kept = ignored.head
    model = FSDP(ignored, ignored_modules=[kept])
    assert kept.weight.shape == (2, 6) and type(kept.weight) is nn.Parameter
    model.double()
    assert model(treadle.ones(1, 4).double()).dtype == treadle.float64


def _scaled(rank: int, world: int) -> None:
    """A gradient of infinity in one process: no process takes the step."""
    from treadle.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    model = _wrapped()
    optimizer = treadle.optim.SGD(model.parameters(), lr=1.0)
    scaler = ShardedGradScaler("cpu", init_scale=4.0)
    before = model.state_dict()
    for bad in (True, False):
        scaler.scale(loss_of(model, treadle.ones(2, 4))).backward()
        if bad and rank == 1:
            model.module.head.bias.grad.to_local().fill_(float("inf"))
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        assert scaler.get_scale() == 2.0
        after = model.state_dict()
        assert treadle.equal(before["head.bias"], after["head.bias"]) == bad


def _refused(rank: int, world: int) -> None:
    from treadle.distributed.fsdp import FullyShardedDataParallel as FSDP
    from treadle.distributed.fsdp import MixedPrecision, ShardingStrategy

    def expect(text: str, **options: Any) -> None:
        with pytest.raises(ValueError) as raised:
            FSDP(nn.Linear(2, 2), **options)
        assert str(raised.value) == text

    strategy = ShardingStrategy.HYBRID_SHARD
    os.environ["LOCAL_WORLD_SIZE"] = "3"
    expect(
        "FullyShardedDataParallel: expected the same number of processes on each machine for "
        "ShardingStrategy.HYBRID_SHARD, got 3 here of 2; give device_mesh",
        sharding_strategy=strategy,
    )
    expect(
        "FullyShardedDataParallel: expected a pair of groups, or device_mesh, for "
        "ShardingStrategy.HYBRID_SHARD, got ProcessGroup",
        sharding_strategy=strategy,
        process_group=dist.group.WORLD,
    )
    expect(
        "FullyShardedDataParallel: expected keep_low_precision_grads=False, got True; gradients "
        "have the dtype of their parameters",
        mixed_precision=MixedPrecision(keep_low_precision_grads=True),
    )
    model = _wrapped()
    model(treadle.ones(1, 4))
    for call in (lambda m: m.clip_grad_norm_(1.0), lambda m: m.register_comm_hook(None, max)):
        with pytest.raises(RuntimeError) as raised:
            call(model.blocks[0])
        assert str(raised.value).endswith("expected the outermost wrapper, got one inside another")


def _groups_and_hooks(rank: int, world: int) -> None:
    """Meshes of groups, and functions that reduce gradients: the result is the same."""
    from treadle.distributed.device_mesh import init_device_mesh
    from treadle.distributed.fsdp import ShardingStrategy

    x = batches(1, 2 * world)[0]
    alone = made()
    loss_of(alone, x).backward()
    norm = nn.utils.clip_grad_norm_(alone.parameters(), 1e9)
    everyone = dist.new_group(list(range(world)))
    (single,) = (g for r, g in enumerate([dist.new_group([r]) for r in range(world)]) if r == rank)
    shards, hybrid = ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD
    mesh = init_device_mesh("cpu", (1, world), mesh_dim_names=("copies", "shards"))
    seen: list = []

    def hook(state: str, gradient: treadle.Tensor, output: Any = None) -> None:
        seen.append((state, gradient.numel(), output is not None))
        if output is None:
            dist.all_reduce(gradient, dist.ReduceOp.AVG)
        else:
            dist.reduce_scatter_tensor(output, gradient, dist.ReduceOp.AVG)

    for options, hooks in (
        ({"sharding_strategy": ShardingStrategy.NO_SHARD, "process_group": everyone}, True),
        ({"sharding_strategy": shards, "process_group": everyone}, True),
        ({"sharding_strategy": hybrid, "process_group": (everyone, single)}, False),
        ({"sharding_strategy": hybrid, "process_group": (single, everyone)}, True),
        ({"sharding_strategy": hybrid}, False),
        ({"sharding_strategy": hybrid, "device_mesh": mesh}, False),
    ):
        model = _wrapped(**options)
        if hooks:
            model.register_comm_hook("state", hook)
        loss_of(model, x.chunk(world)[rank]).backward()
        treadle.testing.assert_close(model.clip_grad_norm_(1e9), norm, rtol=1e-5, atol=1e-6)
    assert len(seen) == 9 and {(s, w) for s, _, w in seen} == {("state", False), ("state", True)}
    with pytest.raises(ValueError) as raised:
        model.register_comm_hook("state", hook)
    assert str(raised.value) == (
        "register_comm_hook: expected a strategy without both shards and copies, got "
        "ShardingStrategy.HYBRID_SHARD"
    )
    with pytest.raises(AssertionError, match="expected no hook so far, got another"):
        again = _wrapped()
        again.register_comm_hook(1, hook)
        again.register_comm_hook(1, hook)


def _all(rank: int, world: int, path: str) -> None:
    _steps(rank, world)
    _policies(rank, world)
    _scaled(rank, world)
    _groups_and_hooks(rank, world)
    _refused(rank, world)
    model = _wrapped()
    dcp.save({"model": model}, checkpoint_id=path)
    assert dist.get_world_size() == world


def test_two_processes(tmp_path: Any) -> None:
    together(2, _all, str(tmp_path))
    found = {"model": made()}
    with treadle.no_grad():
        found["model"].head.weight.zero_()
    dcp.load(found, checkpoint_id=str(tmp_path))
    treadle.testing.assert_close(found["model"].state_dict(), made(Model).state_dict())
