"""Tensor parallelism: modules that are spread train as modules of one process do."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any, List

import pytest

import treadle
import treadle.distributed as dist
import treadle.nn.functional as F  # noqa: N812
from process_groups import together
from simulated_mesh import on_mesh
from treadle import nn
from treadle.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)
from treadle.distributed.device_mesh import DeviceMesh, init_device_mesh
from treadle.distributed.fsdp import fully_shard
from treadle.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    _StridedShard,
    distribute_tensor,
)
from treadle.distributed.tensor.debug import CommDebugMode
from treadle.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Any) -> Any:
        return self.down(F.gelu(self.up(x)))


class Attention(nn.Module):
    """Heads of width 2; a process has some of them."""

    def __init__(self) -> None:
        super().__init__()
        self.wq, self.wk, self.wv = (nn.Linear(8, 8, bias=False) for _ in range(3))
        self.wo = nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, -1, 2).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(mixed.transpose(1, 2).reshape(b, t, -1))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(8), Attention()
        self.norm2, self.mlp = nn.LayerNorm(8), MLP()

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 8)
        self.layers = nn.ModuleList([Block()])
        self.norm, self.out = nn.LayerNorm(8), nn.Linear(8, 11, bias=False)

    def forward(self, tokens: Any) -> Any:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))


# The activations between the layers are replicated.
PLAN = {
    "embedding": RowwiseParallel(input_layouts=Replicate()),
    "layers.*.attention.w[qkv]": ColwiseParallel(),
    "layers.*.attention.wo": RowwiseParallel(),
    "layers.*.mlp.up": ColwiseParallel(),
    "layers.*.mlp.down": RowwiseParallel(),
    "out": ColwiseParallel(use_local_output=False),
}

# The activations between the layers are cut along the sequence.
whole = PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate())
SEQUENCE_PLAN = {
    "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
    "layers.*.norm[12]": SequenceParallel(),
    "layers.*.attention": PrepareModuleInput(
        input_layouts=Shard(1), desired_input_layouts=Replicate(), use_local_output=True
    ),
    "layers.*.attention.w[qkv]": ColwiseParallel(),
    "layers.*.attention.wo": RowwiseParallel(output_layouts=Shard(1)),
    "layers.*.mlp": whole,
    "layers.*.mlp.up": ColwiseParallel(),
    "layers.*.mlp.down": RowwiseParallel(output_layouts=Shard(1)),
    "norm": SequenceParallel(),
    "out": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
}


def batches(count: int) -> List[Any]:
    return [(treadle.randint(0, 11, (4, 6)), treadle.randint(0, 11, (4, 6))) for _ in range(count)]


def trained_alone(model: nn.Module, data: Any) -> List[float]:
    optimiser = treadle.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for tokens, targets in data:
        optimiser.zero_grad()
        loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    return losses


def trained_together(model: nn.Module, data: Any, tp: DeviceMesh, dp: Any) -> List[float]:
    """As trained_alone(), where the processes along `dp` have parts of the batches."""
    optimiser = treadle.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for tokens, targets in data:
        if dp is not None:
            place = dp.get_local_rank()
            tokens, targets = (t.chunk(dp.size())[place] for t in (tokens, targets))
        optimiser.zero_grad()
        spread_targets = distribute_tensor(targets.flatten(), tp, [Replicate()])
        with loss_parallel():
            logits = model(tokens)
            assert logits.placements == (Shard(2),)
            loss = F.cross_entropy(logits.flatten(0, 1), spread_targets)
            loss.backward()
        found = loss.full_tensor().detach()
        if dp is not None:
            dist.all_reduce(found, dist.ReduceOp.AVG, group=dp.get_group())
            for parameter in model.parameters():
                grad = parameter.grad
                local = grad.to_local() if isinstance(grad, DTensor) else grad
                dist.all_reduce(local, dist.ReduceOp.AVG, group=dp.get_group())
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(found.item())
    return losses


def same_parameters(model: nn.Module, alone: nn.Module) -> None:
    for (name, found), wanted in zip(model.named_parameters(), alone.parameters()):
        value = found.full_tensor() if isinstance(found, DTensor) else found
        treadle.testing.assert_close(value, wanted, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize("plan", [PLAN, SEQUENCE_PLAN], ids=["replicated", "sequence"])
def test_a_transformer_trains_as_in_one_process(plan: Any) -> None:
    treadle.manual_seed(0)
    start = Model()
    data = batches(20)
    alone = copy.deepcopy(start)
    wanted = trained_alone(alone, data)
    models = [copy.deepcopy(start) for _ in range(2)]

    def run(mesh: DeviceMesh) -> None:
        model = parallelize_module(models[mesh.get_rank()], mesh, plan)
        assert model.layers[0].mlp.up.weight.placements == (Shard(0),)
        losses = trained_together(model, data, mesh, None)
        assert max(abs(a - b) for a, b in zip(losses, wanted)) < 1e-5
        same_parameters(model, alone)

    on_mesh(2, run)


def _by_hand(mesh: DeviceMesh, model: Model, data: Any) -> List[float]:
    parallelize_module(model, mesh["tp"], PLAN)
    return trained_together(model, data, mesh["tp"], mesh["dp"])


def _fully_sharded(mesh: DeviceMesh, model: Model, data: Any, reshards: bool) -> List[float]:
    """Parameters that tensor parallelism has cut are cut again, along the other dimension."""
    tp, dp = mesh["tp"], mesh["dp"]
    parallelize_module(model, tp, SEQUENCE_PLAN)
    for layer in model.layers:
        fully_shard(layer, mesh=dp, reshard_after_forward=reshards)
    fully_shard(model, mesh=dp, reshard_after_forward=reshards)
    up, out = model.layers[0].mlp.up, model.layers[0].attention.wo
    assert up.weight.placements == (_StridedShard(0, split_factor=2), Shard(0))
    assert out.weight.placements == (Shard(0), Shard(1)) and out.weight.device_mesh == mesh
    optimiser = treadle.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for tokens, targets in data:
        tokens, targets = (t.chunk(2)[dp.get_local_rank()] for t in (tokens, targets))
        optimiser.zero_grad()
        with loss_parallel():
            loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
            loss.backward()
        assert up.weight.grad.placements == up.weight.placements
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        assert isinstance(norm, DTensor)
        optimiser.step()
        mean = loss.full_tensor().detach()
        dist.all_reduce(mean, dist.ReduceOp.AVG, group=dp.get_group())
        losses.append(mean.item())
    assert optimiser.state[up.weight]["momentum_buffer"].placements == up.weight.placements
    return losses


def _state_of_two_dimensions(model: Model) -> None:
    """The state of the whole model, given to all ranks and taken from the first one."""
    options = StateDictOptions(full_state_dict=True)
    state = get_model_state_dict(model, options=options)
    twice = {name: 2 * value for name, value in state.items()}
    set_model_state_dict(model, twice, options=options)
    for name, value in get_model_state_dict(model, options=options).items():
        assert treadle.equal(value, 2 * state[name]), name


def _two_dimensions(rank: int, world: int) -> None:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    treadle.manual_seed(0)
    start = Model()
    data = batches(3)
    alone = copy.deepcopy(start)
    wanted = trained_alone(alone, data)
    for train in (
        _by_hand,
        lambda *args: _fully_sharded(*args, True),
        lambda *args: _fully_sharded(*args, False),
    ):
        model = copy.deepcopy(start)
        losses = train(mesh, model, data)
        assert max(abs(a - b) for a, b in zip(losses, wanted)) < 1e-5
        same_parameters(model, alone)
    _state_of_two_dimensions(model)


@pytest.mark.slow
def test_data_and_tensor_parallelism() -> None:
    together(4, _two_dimensions)


def test_the_communication_of_a_block() -> None:
    """Each pair of layers has one all_reduce forward, and one backward."""
    treadle.manual_seed(0)
    start = MLP()

    def run(mesh: DeviceMesh) -> Any:
        model = copy.deepcopy(start)
        parallelize_module(model, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
        x = treadle.ones(2, 8, requires_grad=True)
        with CommDebugMode() as comm:
            result = model(x)
            forward = dict(comm.get_comm_counts())
            result.sum().backward()
        return forward, dict(comm.get_comm_counts())

    for forward, both in on_mesh(2, run):
        assert forward == {"all_reduce": 1} and both == {"all_reduce": 2}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_of_spread_classes(reduction: str) -> None:
    treadle.manual_seed(0)
    x, weight = treadle.randn(6, 5), treadle.rand(5)
    target = treadle.tensor([0, 4, -100, 2, 1, 3])
    image, labels = treadle.randn(2, 5, 3), treadle.tensor([[0, 1, 2], [3, 4, 0]])

    def run(mesh: DeviceMesh) -> None:
        for logits, classes, scale in (
            (x, target, None),
            (x, target, weight),
            (image, labels, None),
        ):
            plain = logits.clone().requires_grad_()
            wanted = F.cross_entropy(plain, classes, weight=scale, reduction=reduction)
            (wanted * wanted).sum().backward()
            c = distribute_tensor(classes, mesh, [Replicate()])
            w = None if scale is None else distribute_tensor(scale, mesh, [Replicate()])
            for given, weights in ((c, w), (classes, scale)):
                d = distribute_tensor(logits, mesh, [Shard(1)]).requires_grad_()
                with loss_parallel(), CommDebugMode() as comm:
                    found = F.cross_entropy(d, given, weight=weights, reduction=reduction)
                    (found * found).sum().backward()
                assert set(comm.get_comm_counts()) == {"all_reduce"}
                treadle.testing.assert_close(found.full_tensor(), wanted)
                assert d.grad.placements == (Shard(1),)  # type: ignore[union-attr]
                treadle.testing.assert_close(d.grad.full_tensor(), plain.grad)  # type: ignore[union-attr]
            with pytest.raises(RuntimeError, match="expected DTensors alone"):
                F.cross_entropy(d, classes)
            with loss_parallel(), pytest.raises(RuntimeError, match="expected DTensors alone"):
                F.mse_loss(d, logits)

    on_mesh(2, run)


def test_inputs_and_outputs() -> None:
    class Two(nn.Module):
        def forward(self, a: Any, b: Any = None, *, c: Any = None) -> Any:
            self.seen = a, b, c
            return a, c

    def run(mesh: DeviceMesh) -> None:
        local = treadle.ones(2, 2)
        style = PrepareModuleInputOutput(
            input_layouts=(Shard(0), None),
            desired_input_layouts=(Replicate(), None),
            input_kwarg_layouts={"c": Replicate()},
            desired_input_kwarg_layouts={"c": Shard(-1)},
            output_layouts=(Replicate(), Shard(1)),
            desired_output_layouts=(Shard(0), Replicate()),
        )
        module = parallelize_module(Two(), mesh, style)
        a, c = module(local, 5, c=local)
        seen = module.seen
        assert seen[0].shape == (4, 2) and seen[0].placements == (Replicate(),) and seen[1] == 5
        assert seen[2].placements == (Shard(1),) and a.shape == (2, 2) and c.shape == (2, 2)
        with pytest.raises(ValueError, match="inputs and input_layouts should have same length"):
            module(local)
        embedding = parallelize_module(nn.Embedding(5, 4), mesh, ColwiseParallel())
        assert embedding(treadle.tensor([1, 2])).shape == (2, 2)
        parts = parallelize_module(
            nn.Identity(),
            mesh,
            PrepareModuleOutput(output_layouts=Partial(), desired_output_layouts=Replicate()),
        )
        assert parts(local).tolist() == [[2, 2], [2, 2]]

    on_mesh(2, run)


class Counted(ParallelStyle):
    def __init__(self) -> None:
        self.modules: List[Any] = []

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self.modules.append(module)
        return module


def test_plans() -> None:
    mesh = DeviceMesh("cpu", [0], _init_backend=False, _rank=0)
    model = nn.ModuleDict({"layers": nn.ModuleList([MLP(), MLP(), MLP()])})
    style = Counted()
    parallelize_module(model, mesh, {"layers.[01].up": style, "layers.2": style, "": style})
    layers = model["layers"]
    assert style.modules == [layers[0].up, layers[1].up, layers[2], model]
    with pytest.warns(UserWarning, match="'heads' in module"):
        parallelize_module(model, mesh, {"heads.*": style})
    with pytest.warns(UserWarning, match="No parallelize_plan is provided"):
        assert parallelize_module(model, mesh) is model
    with pytest.raises(TypeError, match="Expect Union"):
        parallelize_module(model, mesh, [style])  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="ColwiseParallel currently only support"):
        parallelize_module(nn.ReLU(), mesh, ColwiseParallel())
    with pytest.raises(ValueError) as caught:
        PrepareModuleInput(input_layouts=(Shard(0),), desired_input_layouts=())
    assert str(caught.value) == (
        "PrepareModuleInput: expected as many desired layouts as layouts, got 1 layouts and 0 "
        "desired ones"
    )
    assert repr(ColwiseParallel()) == (
        "ColwiseParallel(input_layouts=(Replicate(),), output_layouts=(Shard(dim=-1),), "
        "use_local_output=True)"
    )
