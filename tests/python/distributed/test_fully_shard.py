"""fully_shard(): training with spread parameters is training of one process with the whole batch,
in less memory."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, List

import pytest

import treadle
import treadle.distributed as dist
from process_groups import together
from treadle import nn
from treadle.distributed import checkpoint as dcp
from treadle.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    apply_activation_checkpointing,
)
from treadle.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from treadle.utils.checkpoint import checkpoint


class Block(nn.Module):
    """A block with a layer without bias, one whose first dimension 2 and 3 do not divide, and a
    parameter that is used twice."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, width + 3)
        self.down = nn.Linear(width + 3, width, bias=False)
        self.scale = nn.Parameter(treadle.ones(1, width))

    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        return (x + self.down(treadle.tanh(self.up(x)))) * self.scale + self.scale


class Model(nn.Module):
    """Blocks, one of which is called twice, between an embedding and a head."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.first = nn.Linear(4, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.head = nn.Linear(width, 2)

    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        x = self.first(x)
        for block in (*self.blocks, self.blocks[0]):
            x = block(x)
        return self.head(x)


def made(kind: Callable = Model, *args: Any) -> Any:
    treadle.manual_seed(3)
    return kind(*args)


def sharded(model: Any, **options: Any) -> Any:
    """Each block for itself, and the rest."""
    from treadle.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def batches(count: int, size: int) -> List[treadle.Tensor]:
    generator = treadle.Generator().manual_seed(1)
    return [treadle.randn(size, 4, generator=generator) for _ in range(count)]


def loss_of(model: Any, x: treadle.Tensor) -> treadle.Tensor:
    return (model(x).float() ** 2).mean()


def whole(model: Any) -> Dict[str, treadle.Tensor]:
    """The parameters, put together."""
    return {n: p.detach().full_tensor() for n, p in model.named_parameters()}


def expect_close(model: Any, alone: Any, **tolerance: float) -> None:
    expected = {name: parameter.detach() for name, parameter in alone.named_parameters()}
    treadle.testing.assert_close(whole(model), expected, **tolerance)


OPTIMIZERS: Dict[str, Callable] = {
    "adam": lambda p: treadle.optim.Adam(p, lr=0.01),
    "sgd": lambda p: treadle.optim.SGD(p, lr=0.05, momentum=0.9),
}


def _train(rank: int, world: int, optimizer: str, count: int = 20, **options: Any) -> tuple:
    """Steps of a sharded model beside those of the same model in one process."""
    alone, model = made(), sharded(made(), **options)
    steps = [OPTIMIZERS[optimizer](m.parameters()) for m in (alone, model)]
    for x in batches(count, 2 * world):
        loss_of(alone, x).backward()
        loss_of(model, x.chunk(world)[rank]).backward()
        norms = [nn.utils.clip_grad_norm_(m.parameters(), 0.5) for m in (alone, model)]
        treadle.testing.assert_close(norms[1].full_tensor(), norms[0], rtol=1e-5, atol=1e-5)
        for step in steps:
            step.step()
            step.zero_grad()
    expect_close(model, alone, rtol=1e-5, atol=1e-5)
    return alone, model, steps[1]


def _policies(rank: int, world: int) -> None:
    from treadle.distributed.fsdp import (
        CPUOffloadPolicy,
        FSDPModule,
        MixedPrecisionPolicy,
        fully_shard,
    )
    from treadle.distributed.tensor import Shard

    half = MixedPrecisionPolicy(treadle.bfloat16, treadle.float32)
    ends = MixedPrecisionPolicy(treadle.bfloat16, treadle.float32, treadle.float32)
    model = made()
    for block in model.blocks:
        fully_shard(block, mp_policy=half, offload_policy=CPUOffloadPolicy())
    fully_shard(model, mp_policy=ends)
    seen: list = []
    model.blocks[0].up.register_forward_hook(lambda m, i, o: seen.append((m.weight.dtype, o.dtype)))
    x = batches(1, 2 * world)[0]
    y = model(x.chunk(world)[rank])
    assert seen[0] == (treadle.bfloat16, treadle.bfloat16) and y.dtype == treadle.float32
    loss_of(model, x.chunk(world)[rank]).backward()
    alone = made()
    loss_of(alone, x).backward()
    for name, parameter in alone.named_parameters():
        grad = model.get_parameter(name).grad
        assert grad.dtype == treadle.float32 and isinstance(model.blocks[0], FSDPModule)
        treadle.testing.assert_close(grad.full_tensor(), parameter.grad, rtol=0.05, atol=0.02)

    # Without reduce_dtype gradients are reduced, and accumulated, in the dtype of the parameters.
    own = sharded(
        made(),
        mp_policy=MixedPrecisionPolicy(
            treadle.bfloat16,
            output_dtype=treadle.bfloat16,
            param_dtype_override_fn=lambda p: p.dtype if p.shape[0] == 1 else None,
        ),
    )
    own.set_requires_gradient_sync(False)
    loss_of(own, x.chunk(world)[rank]).backward()
    parts = {p.places[0][1]: p for s in _states(own) for p in s.group.parameters}
    assert parts["weight"].accumulated.dtype == treadle.float32
    assert parts["weight"].unsharded.dtype == treadle.bfloat16
    assert parts["scale"].unsharded.dtype == treadle.float32

    last = sharded(made(), shard_placement_fn=lambda p: Shard(p.dim() - 1))
    assert last.head.weight.placements == (Shard(1),)
    loss_of(last, x.chunk(world)[rank]).backward()
    ignored = made()
    kept = ignored.blocks[0].scale
    sharded(ignored, ignored_params={kept})
    assert ignored.blocks[0].scale is kept and kept.shape == (1, 6)
    for name, parameter in alone.named_parameters():
        grad = last.get_parameter(name).grad
        treadle.testing.assert_close(grad.full_tensor(), parameter.grad, rtol=1e-4, atol=1e-6)


def _accumulate(rank: int, world: int) -> None:
    """Gradients of several backwards, reduced in the last one; all other ways to compute."""
    alone, model = made(), sharded(made(), reshard_after_forward=False)
    xs = batches(3, 2 * world)
    for x in xs:
        loss_of(alone, x).backward()
    for number, x in enumerate(xs):
        model.set_requires_gradient_sync(number == 2)
        model.set_is_last_backward(number == 2)
        loss_of(model, x.chunk(world)[rank]).backward()
        if number < 2:
            assert all(p.grad is None for p in model.parameters())
    expected = {n: p.grad for n, p in alone.named_parameters()}

    def expect_gradients(found: Any, factor: float = 1) -> None:
        for name, grad in expected.items():
            mine = found.get_parameter(name).grad.full_tensor()
            treadle.testing.assert_close(mine, grad * factor, rtol=1e-4, atol=1e-5)

    expect_gradients(model)
    # Computed again in backward; prefetched by hand; divided otherwise; summed over backwards.
    again = sharded(made())
    again.blocks[1].set_modules_to_forward_prefetch([again.blocks[0]])
    again.blocks[1].set_modules_to_backward_prefetch([again.blocks[0]])
    for part in (again, *again.blocks):
        part.set_gradient_divide_factor(2.0 * world)
    for block in again.blocks:
        inner = block.forward
        block.forward = lambda x, inner=inner: checkpoint(inner, x, use_reentrant=False)
    for x in xs:
        loss_of(again, x.chunk(world)[rank]).backward()
    expect_gradients(again, 0.5)
    wrapped = made()
    apply_activation_checkpointing(wrapped, check_fn=lambda m: isinstance(m, Block))
    sharded(wrapped).set_force_sum_reduction_for_comms(True)
    assert list(wrapped.state_dict()) == list(alone.state_dict())
    for x in xs:
        loss_of(wrapped, x.chunk(world)[rank]).backward()
    for (name, grad), parameter in zip(expected.items(), wrapped.parameters()):
        mine = parameter.grad.full_tensor()
        treadle.testing.assert_close(mine, grad, rtol=1e-4, atol=1e-5, msg=name)
    # A block in whose backward nothing but the input needs a gradient; an unused one.
    frozen = made()
    for parameter in frozen.blocks[0].parameters():
        parameter.requires_grad_(False)
    sharded(frozen)
    for x in xs:
        loss_of(frozen, x.chunk(world)[rank]).backward()
    assert frozen.blocks[0].up.weight.grad is None
    grad = frozen.first.weight.grad.full_tensor()
    treadle.testing.assert_close(grad, expected["first.weight"], rtol=1e-4, atol=1e-5)
    assert all(not s.group.is_unsharded for s in _states(frozen))

    unused = sharded(made())
    unused.set_reduce_scatter_unused_params(True)
    if rank == 0:
        unused.blocks[1].forward = lambda x: x
    loss_of(unused, xs[0].chunk(world)[rank]).backward()
    assert unused.blocks[1].up.weight.grad is not None


def _states(model: Any) -> list:
    from treadle.distributed.fsdp._state import states_in

    return [state for state in states_in(model) if state.group is not None]


def _by_hand(rank: int, world: int) -> None:
    from treadle.distributed.fsdp import register_fsdp_forward_method
    from treadle.distributed.tensor import DTensor

    model = sharded(made())
    block, x = model.blocks[0], treadle.ones(1, 6)
    handle = block.unshard(async_op=True)
    handle.wait()
    assert not isinstance(block.up.weight, DTensor) and block.up.weight.shape == (9, 6)
    assert set(block.state_dict()) == {"up.weight", "up.bias", "down.weight", "scale"}
    assert isinstance(block.up.weight, DTensor)  # states are those of the rows
    block.unshard()
    block.reshard()
    assert block.up.weight.to_local().shape[0] == len(treadle.ones(9).chunk(world)[rank])
    before = model(treadle.ones(1, 4)).detach()
    type(block).twice = lambda self, y: self.up(y) * 2
    register_fsdp_forward_method(block, "twice")
    assert block.twice(x).shape == (1, 9) and isinstance(block.up.weight, DTensor)
    with pytest.raises(AttributeError, match="expected FSDPBlock to have a method 'thrice'"):
        register_fsdp_forward_method(block, "thrice")

    # An exception in forward; the same values afterwards.
    block.down.register_forward_pre_hook(lambda m, i: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model(treadle.ones(1, 4))
    block.down._forward_pre_hooks.clear()
    model.reset_iter_state()
    treadle.testing.assert_close(model(treadle.ones(1, 4)).detach(), before)
    # One in backward: the next step is that of a model without it.
    steps = [(m, OPTIMIZERS["sgd"](m.parameters())) for m in (made(), sharded(made()))]
    broken = steps[1][0]
    hook = broken.blocks[0].register_full_backward_hook(lambda m, i, o: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        loss_of(broken, treadle.ones(1, 4)).backward()
    hook.remove()
    for one, step in steps:
        step.zero_grad()
        loss_of(one, treadle.ones(1, 4)).backward()
        step.step()
    broken.reshard()
    expect_close(broken, steps[0][0])

    # Without memory until it is sharded; another dtype; without gradients.
    with treadle.device("meta"):
        meta = made()
    sharded(meta)
    with pytest.raises(RuntimeError, match="got 'weight' on the device meta; call to_empty"):
        meta(treadle.ones(1, 4))
    meta.to_empty(device="cpu")
    optimizer = treadle.optim.SGD(meta.parameters(), lr=0.1)
    with treadle.no_grad():
        for parameter in meta.parameters():
            parameter.fill_(0.25)
    meta.double()
    with treadle.no_grad():
        assert meta(treadle.ones(1, 4).double()).dtype == treadle.float64
    meta(treadle.ones(1, 4).double()).sum().backward()
    assert meta.head.bias.grad.dtype == treadle.float64
    meta.reshard()  # the root's, which stay whole after forward
    assert all(a is b for a, b in zip(optimizer.param_groups[0]["params"], meta.parameters()))
    assert meta.head.bias.dtype == treadle.float64 == meta.head.bias.to_local().dtype


def _errors(rank: int, world: int) -> None:
    from treadle.distributed.device_mesh import init_device_mesh
    from treadle.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    def refused(text: str, *args: Any, **options: Any) -> None:
        with pytest.raises((ValueError, TypeError, AssertionError)) as raised:
            fully_shard(*args, **options)
        assert str(raised.value) == text

    model = fully_shard(nn.Linear(2, 2))
    refused("fully_shard: expected a module for the first time, got FSDPLinear again", model)
    for given in (3, 0, "x"):
        refused(
            "fully_shard: expected reshard_after_forward to be a bool, None, or a divisor of the 2 "
            f"processes that shard, got {given!r}",
            nn.Linear(2, 2),
            reshard_after_forward=given,
        )
    with pytest.raises(ValueError) as raised:
        model.set_reshard_after_forward(2)
    assert str(raised.value) == "set_reshard_after_forward: expected a bool, got int"
    refused(
        "param_dtype_override_fn: expected None, param_dtype or the dtype of the parameter "
        "(treadle.bfloat16, treadle.float32), got treadle.float64",
        nn.Linear(2, 2),
        mp_policy=MixedPrecisionPolicy(
            treadle.bfloat16, param_dtype_override_fn=lambda p: treadle.float64
        ),
    )
    mesh = init_device_mesh("cpu", (1, 1, world), mesh_dim_names=("a", "b", "c"))
    refused("fully_shard: expected a mesh of 1 or 2 dimensions, got 3", nn.Linear(2, 2), mesh=mesh)
    scalar = nn.Module()
    scalar.alpha = nn.Parameter(treadle.ones(()))
    refused(
        "fully_shard: expected parameters with dimensions, got one without; give it the shape "
        "(1,), or to ignored_params: 'alpha'",
        scalar,
    )
    with pytest.raises(ValueError, match="do not implement forward"):
        fully_shard(nn.ModuleList([nn.Linear(2, 2)]))

    class Called(nn.ModuleList):
        def forward(self, x: treadle.Tensor) -> treadle.Tensor:
            return self[0](x)

    assert fully_shard(Called([nn.Linear(2, 2)]))(treadle.ones(1, 2)).shape == (1, 2)
    with pytest.raises(AssertionError, match="copy it before fully_shard"):
        import copy

        copy.deepcopy(model)


def _all_of_two(rank: int, world: int, path: str) -> None:
    _train(rank, world, "adam")
    _train(rank, world, "sgd", reshard_after_forward=True)
    _load(path, sharded(made()), made(Pair))
    _policies(rank, world)
    _accumulate(rank, world)
    _by_hand(rank, world)
    _memory(rank, world, 0.6)
    _errors(rank, world)


# ---- four processes ----


class Tower(nn.Module):
    """Many blocks without anything else."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(nn.Linear(32, 32) for _ in range(24)))

    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        return self.blocks(x)


def _bytes_of_parameters(model: Any) -> int:
    """The memory of all parameters in this process, of rows and of what is whole just now."""
    storages = {}
    for state in _states(model):
        for parameter in state.group.parameters:
            for tensor in (parameter.local(), parameter._memory):
                if tensor is not None and tensor.untyped_storage().nbytes():
                    storage = tensor.untyped_storage()
                    storages[storage.data_ptr()] = storage.nbytes()
        gathers = [gather.rows for gather in state.group._gathers]
        for rows in (*gathers, *state.group._part_rows.values()):
            storages[rows.data_ptr()] = rows.untyped_storage().nbytes()
    return sum(storages.values())


def _memory(rank: int, world: int, limit: float) -> None:
    alone = made(Tower)
    model = sharded_tower(made(Tower))
    total = sum(p.numel() * p.element_size() for p in alone.parameters())
    seen: list = []
    for block in model.blocks:
        block.register_forward_hook(lambda m, i, o: seen.append(_bytes_of_parameters(model)))
        block.register_full_backward_hook(lambda m, i, o: seen.append(_bytes_of_parameters(model)))
    for _ in range(2):
        model(treadle.ones(2, 32, requires_grad=True)).sum().backward()
    assert len(seen) == 4 * len(model.blocks) and max(seen) <= limit * total
    assert _bytes_of_parameters(model) == total // world
    gradients = [p.grad.to_local() for p in model.parameters()]
    assert sum(g.untyped_storage().nbytes() for g in gradients) == total // world


def sharded_tower(model: Any, **options: Any) -> Any:
    from treadle.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def _parts(rank: int, world: int) -> None:
    """Between forward and backward, two processes have all rows."""
    _train(rank, world, "sgd", 6, reshard_after_forward=2)
    model = sharded_tower(made(Tower), reshard_after_forward=2)
    total = sum(p.numel() * p.element_size() for p in made(Tower).parameters())
    own, x = total // world, treadle.ones(2, 32)
    with treadle.no_grad():
        before = model(x)
    assert _bytes_of_parameters(model) == own  # no backward follows
    y = model(x)
    assert _bytes_of_parameters(model) == own + total // 2
    # Backward computes with the parameters of forward; the next forward takes the new ones.
    with treadle.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    y.sum().backward()
    assert _bytes_of_parameters(model) == own
    alone = made(Tower)
    alone(x).sum().backward()
    for name, parameter in alone.named_parameters():
        treadle.testing.assert_close(model.get_parameter(name).grad.full_tensor(), parameter.grad)
    assert not treadle.allclose(model(x), before)


class Pair(nn.Module):
    """Two layers; on a mesh the first one is split by columns of the result, the second one by rows
    of the argument."""

    def __init__(self, mesh: Any = None) -> None:
        super().__init__()
        self.mesh = mesh
        parameters = {"up": treadle.randn(8, 4), "down": treadle.randn(2, 8)}
        for dim, (name, parameter) in enumerate(parameters.items()):
            if mesh is not None:
                from treadle.distributed.tensor import Shard, distribute_tensor

                parameter = distribute_tensor(parameter, mesh, [Shard(dim)])
            self.register_parameter(name, nn.Parameter(parameter))

    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        if self.mesh is None:
            return treadle.tanh(x @ self.up.t()) @ self.down.t()
        from treadle.distributed.tensor import DTensor, Replicate

        x = DTensor.from_local(x, self.mesh, [Replicate()])
        return (treadle.tanh(x @ self.up.t()) @ self.down.t()).full_tensor()


def _save(rank: int, path: str, model: Any, optimizer: Any, pair: Any) -> None:
    """The state as a checkpoint, and whole in a file."""
    states = get_state_dict(model, optimizer)
    dcp.save({"model": states[0], "optimizer": states[1], "pair": pair}, checkpoint_id=path + "/d")
    full = StateDictOptions(full_state_dict=True, cpu_offload=True)
    states = get_state_dict(model, optimizer, options=full)
    pair = get_model_state_dict(pair, options=full)
    assert rank == 0 or states == ({}, {})
    if rank == 0:
        treadle.save([*states, pair], path + "/whole.pt")


def _load(path: str, model: Any, pair: Any) -> None:
    """The checkpoint of four processes in another number of them; and the whole state in the first
    one."""
    whole = treadle.load(path + "/whole.pt")
    for given in (False, True):
        optimizer = OPTIMIZERS["adam"](model.parameters())
        if given:
            how = StateDictOptions(full_state_dict=True, broadcast_from_rank0=dist.is_initialized())
            is_first = not dist.is_initialized() or dist.get_rank() == 0
            states = whole[:2] if is_first else [{}, {}]
        else:
            how = StateDictOptions()
            found = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
            dcp.load({**found, "pair": pair}, checkpoint_id=path + "/d")
            states = [found["model"], found["optimizer"]]
        set_state_dict(
            model,
            optimizer,
            model_state_dict=dict(states[0]),
            optim_state_dict=states[1],
            options=how,
        )
        full = StateDictOptions(full_state_dict=True)
        found = get_state_dict(model, optimizer, options=full)
        treadle.testing.assert_close(dict(found[0]), dict(whole[0]), rtol=0, atol=0)
        treadle.testing.assert_close(found[1]["state"], whole[1]["state"], rtol=0, atol=0)
        assert optimizer.param_groups[0]["lr"] == 0.01
        with treadle.no_grad():
            for parameter in model.parameters():
                parameter.zero_()
    pair = get_model_state_dict(pair, options=full)
    treadle.testing.assert_close(dict(pair), dict(whole[2]), rtol=0, atol=0)


def _copies_of_shards(rank: int, world: int, path: str) -> None:
    """A mesh of two dimensions: copies of shards; and shards of what is split by columns and
    rows."""
    from treadle.distributed.device_mesh import init_device_mesh
    from treadle.distributed.fsdp import fully_shard
    from treadle.distributed.tensor import Replicate, Shard

    mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("copies", "shards"))
    trained_with = _train(rank, world, "adam", 6, mesh=mesh)[1:]
    assert trained_with[0].head.bias.placements == (Replicate(), Shard(0))
    # Averages over the copies only in the last of two backwards.
    alone, model = made(), sharded(made(), mesh=mesh)
    for number, x in enumerate(batches(2, 2 * world)):
        loss_of(alone, x).backward()
        model.set_requires_all_reduce(number == 1)
        loss_of(model, x.chunk(world)[rank]).backward()
    for name, parameter in alone.named_parameters():
        grad = model.get_parameter(name).grad.full_tensor()
        treadle.testing.assert_close(grad, parameter.grad, rtol=1e-4, atol=1e-6)

    both = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("data", "model"))
    alone, model = made(Pair), made(Pair, both["model"])
    fully_shard(model, mesh=both["data"])
    assert model.up.device_mesh.mesh_dim_names == ("data", "model")
    assert model.up.to_local().shape == (2, 4) and model.up.shape == (8, 4)
    assert model.down.to_local().shape == (1, 4) and model.down.shape == (2, 8)
    steps = [OPTIMIZERS["adam"](m.parameters()) for m in (alone, model)]
    for x in batches(8, 4):
        loss_of(alone, x).backward()
        loss_of(model, x.chunk(2)[both.get_local_rank("data")]).backward()
        for step in steps:
            step.step()
            step.zero_grad()
    expect_close(model, alone, rtol=1e-5, atol=1e-5)
    _save(rank, path, *trained_with, model)


def _all_of_four(rank: int, world: int, path: str) -> None:
    _memory(rank, world, 0.35)
    _parts(rank, world)
    _copies_of_shards(rank, world, path)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: Any) -> str:
    """The folder in which four processes saved."""
    path = str(tmp_path_factory.mktemp("saved"))
    together(4, _all_of_four, path)
    return path


@pytest.mark.slow
def test_two_processes(saved: str) -> None:
    together(2, _all_of_two, saved)


@pytest.mark.slow
def test_one_process(saved: str) -> None:
    _load(saved, made(), made(Pair))
