"""DistributedDataParallel where a program meets it: unused parameters, accumulation, views,
checkpoints, sparse and narrow gradients, buffers, copies; and the texts of its errors."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any, Callable, Dict, List

import numpy as np
import pytest

import treadle
import treadle.distributed as dist
from process_groups import together
from treadle import nn
from treadle.nn.parallel import DistributedDataParallel
from treadle.nn.parallel.distributed import _MixedPrecision
from treadle.utils.checkpoint import checkpoint


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2)
        self.other = nn.Linear(4, 2)

    def forward(self, x: treadle.Tensor, which: str = "both") -> Any:
        hidden = self.first(x).tanh()
        if which == "pair":
            return self.second(hidden), self.other(hidden)
        if which == "second":
            return self.second(hidden)
        return self.second(hidden) + self.other(hidden)


class Checkpointed(nn.Module):
    """Its layer is used twice, in two checkpoints."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.last = nn.Linear(3, 1)
        self.reentrant = reentrant

    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        for _ in range(2):
            x = checkpoint(self.layer, x, use_reentrant=self.reentrant).tanh()
        return self.last(x)


class Looks(nn.Module):
    """A weight that is not an Embedding's."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(treadle.ones(3, 2))

    def forward(self, places: treadle.Tensor) -> treadle.Tensor:
        return nn.functional.embedding(places, self.weight, sparse=True)


def shares(world: int = 2) -> List[treadle.Tensor]:
    numbers = np.random.default_rng(99).standard_normal((4 * world, 3)).astype(np.float32)
    return list(treadle.from_numpy(numbers).chunk(world))


def make(kind: Callable[[], nn.Module] = Net, **options: Any) -> DistributedDataParallel:
    treadle.manual_seed(0)
    return DistributedDataParallel(kind(), **options)


def grads(module: nn.Module) -> Dict[str, Any]:
    return {n: None if p.grad is None else p.grad.to_dense().numpy().copy()
            for n, p in module.named_parameters()}  # fmt: skip


def message_of(call: Callable[[], Any]) -> str:
    with pytest.raises((RuntimeError, ValueError, TypeError)) as raised:
        call()
    return f"{type(raised.value).__name__}: {raised.value}"


# ---- what the processes do: each function returns what the tests compare ----


def _no_sync(rank: int, x: treadle.Tensor) -> Any:
    model = make()
    with model.no_sync():
        model(x[:2]).sum().backward()
    before = grads(model.module)
    model(x[2:]).sum().backward()
    return before, grads(model.module)


def _several_forwards(rank: int, x: treadle.Tensor) -> Any:
    model = make(bucket_cap_mb=1e-5)
    found = []
    for _ in range(2):
        model.zero_grad()
        (model(x[:2]).sum() + model(x[2:]).sum()).backward()
        found.append(grads(model.module))
    # The second derivatives are the program's own.
    model.zero_grad()
    y = x.clone().requires_grad_()
    (slope,) = treadle.autograd.grad(model(y).sum(), y, create_graph=True)
    (slope.square().sum() + model(y).sum()).backward()
    with pytest.warns(UserWarning, match="higher derivatives are not averaged"):
        model(x).sum().backward(create_graph=True)
    return found


def _unused(rank: int, x: treadle.Tensor, **option: bool) -> Any:
    net = Net()
    extra = net.extra = nn.Linear(1, 1)  # used by nobody
    model = make(lambda: net, bucket_cap_mb=1e-5, **option)
    for _ in range(3):
        model.zero_grad()
        model(x, "second" if rank == 0 else "both").sum().backward()
        assert extra.weight.grad is None
    return grads(net)


def _output_left_out(rank: int, x: treadle.Tensor) -> Any:
    model = make(find_unused_parameters=True)
    found = []
    for _ in range(2):
        model.zero_grad()
        outputs = model(x, "pair")
        outputs[0 if rank else 1].sum().backward()
        found.append(grads(model.module))
    return found


def _views(rank: int, x: treadle.Tensor) -> Any:
    model = make(gradient_as_bucket_view=True)
    optimizer = treadle.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad(set_to_none=step % 2 == 0)
        model(x).sum().backward()
        owners = {p.grad.untyped_storage().data_ptr() for p in model.parameters()}
        flats = {b.flat.untyped_storage().data_ptr() for b in model.reducer.buckets}
        assert owners == flats
    assert model.module.first.weight.grad._base is not None
    return grads(model.module)


def _order(rank: int, x: treadle.Tensor) -> Any:
    """The buckets of the second step follow the first backward(), that of rank 0."""

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x: treadle.Tensor) -> treadle.Tensor:
            layers = [self.b, self.a, self.c] if rank == 0 else [self.a, self.b, self.c]
            for layer in layers:
                x = layer(x)
            return x

    model = make(Mixed, bucket_cap_mb=1e-5)
    assert len(model.reducer.buckets) == 1
    found = []
    model.register_comm_hook(found, _watch)
    for _ in range(2):
        found.clear()
        model(x).sum().backward()
    names = {id(p): n for n, p in model.module.named_parameters()}
    return [(n, is_last, [names[i] for i in parameters]) for n, is_last, parameters in found]


def _watch(state: Any, bucket: dist.GradBucket) -> treadle.futures.Future:
    flat = bucket.buffer()
    assert sum(g.numel() for g in bucket.gradients()) == flat.numel()
    assert [g.shape for g in bucket.gradients()] == [p.shape for p in bucket.parameters()]
    state.append((bucket.index(), bucket.is_last(), [id(p) for p in bucket.parameters()]))
    work = dist.all_reduce(flat.div_(dist.get_world_size()), async_op=True)
    return work.get_future().then(lambda done: done.value()[0])


def _checkpoints(rank: int, x: treadle.Tensor) -> Any:
    found = {}
    for reentrant, options in ((False, {}), *((r, {"static_graph": True}) for r in (True, False))):
        model = make(lambda r=reentrant: Checkpointed(r), **options)
        y = x.clone().requires_grad_()
        for _ in range(3):
            model.zero_grad()
            model(y).sum().backward()
        found[reentrant, bool(options)] = grads(model.module)
    model = make(lambda: Checkpointed(True), bucket_cap_mb=1e-5)
    found["twice"] = message_of(lambda: model(x.clone().requires_grad_()).sum().backward())
    return found


def _sparse(rank: int, x: treadle.Tensor) -> Any:
    found = []
    for register in (False, True):
        model = make(lambda: nn.Embedding(6, 2, sparse=True))
        if register:
            model._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)
        for _ in range(2):
            model.zero_grad()
            model(treadle.tensor([1, 1, 2 + rank] if rank else [0])).sum().backward()
        assert model.module.weight.grad.is_sparse
        found.append(grads(model.module)["weight"])
    return found


def _narrow(rank: int, x: treadle.Tensor) -> Any:
    precision = _MixedPrecision(treadle.bfloat16, treadle.float32, treadle.bfloat16)
    model = make(mixed_precision=precision)
    output = model(x)
    output.sum().backward()
    assert output.dtype == treadle.bfloat16
    assert {p.dtype for p in model.parameters()} == {treadle.float32}
    found = [grads(model.module)]
    for kind in (dist.BuiltinCommHookType.FP16_COMPRESS,):
        model = make()
        model._register_builtin_comm_hook(kind)
        model(x).sum().backward()
        found.append(grads(model.module))
    return found


def _buffers(rank: int, x: treadle.Tensor) -> Any:
    def norm() -> nn.Module:
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))

    together_, apart = make(norm), make(norm, forward_sync_buffers=False)
    with pytest.warns(FutureWarning, match="broadcast_buffers is an older name"):
        older = make(norm, broadcast_buffers=False)
    assert not older.forward_sync_buffers and together_.broadcast_buffers
    for model in (together_, apart):
        for _ in range(2):
            model(x).sum().backward()
    together_.eval()(x)  # takes the buffers of the first process
    hooked = make(norm)
    hooked._register_buffer_comm_hook(None, lambda state, named: found.append(list(named)))
    found: list = []
    hooked(x).sum().backward()
    return [m.module[1].running_mean.tolist() for m in (together_, apart)], found


def _copies(rank: int, x: treadle.Tensor) -> Any:
    for options in ({}, {"static_graph": True}, {"gradient_as_bucket_view": True}):
        model = make(**options)
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            for _ in range(2):
                model.zero_grad()
                other.zero_grad()
                model(x).sum().backward()
                other(x).sum().backward()
            for p, q in zip(model.parameters(), other.parameters()):
                assert p is not q and treadle.equal(p.grad, q.grad)
    assert list(model.state_dict()) == [f"module.{name}" for name in model.module.state_dict()]
    with treadle.no_grad():
        assert not model.eval()(x).requires_grad


def _delayed(rank: int, x: treadle.Tensor) -> Any:
    treadle.manual_seed(0)
    net = Net()
    later = [(f"other.{name}", p) for name, p in net.other.named_parameters()]
    model = DistributedDataParallel(
        net, delay_all_reduce_named_params=later, param_to_hook_all_reduce=net.first.weight
    )
    for _ in range(2):
        model.zero_grad()
        model(x).sum().backward()
    return grads(net)


def _by_hand(rank: int, x: treadle.Tensor) -> Any:
    model = make()
    model.require_manual_backward_finalization = True
    with pytest.raises(RuntimeError, match="got gradients that are missing"):
        model.finalize_backward()
    for _ in range(2):
        model.zero_grad()
        model(x).sum().backward()
        model.finalize_backward()
    found = grads(model.module)
    model(x).sum().backward()
    return found, message_of(lambda: model(x))


def _groups(rank: int, x: treadle.Tensor) -> Any:
    alone = [dist.new_group([each]) for each in range(2)][rank]
    model = make(process_group=alone)
    model(x).sum().backward()
    found = grads(model.module)
    text = message_of(lambda: pickle.dumps(model))
    model.zero_grad()
    model._update_process_group(dist.group.WORLD)
    model(x).sum().backward()
    net = Net()
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, ["other.weight"])
    model2 = DistributedDataParallel(net)
    model2(x).sum().backward()
    return found, text, grads(model.module), net.other.weight.grad.numpy()


def _mistakes(rank: int, x: treadle.Tensor) -> Any:
    found = {}
    model = make()
    model(x, "second").sum().backward()
    found["unused"] = message_of(lambda: model(x, "second"))
    with treadle.no_grad():
        model(x, "second")
    model = make()
    output = model(x, "second").sum()
    output.backward(retain_graph=True)
    found["twice"] = message_of(lambda: output.backward())
    model = make(static_graph=True)
    model(x, "second").sum().backward()
    found["static"] = message_of(lambda: model(x).sum().backward())
    found["shape"] = message_of(lambda: DistributedDataParallel(nn.Linear(2, 2 + rank)))
    net = nn.Sequential(*[nn.Linear(2, 2)] * (1 + rank), *[nn.Linear(2, 2) for _ in range(rank)])
    found["number"] = message_of(lambda: DistributedDataParallel(net))
    model = make()
    found["no hook"] = message_of(lambda: model.register_comm_hook(None, 3))
    found["few"] = message_of(lambda: model.register_comm_hook(None, lambda state: None))
    model.register_comm_hook(None, lambda state, bucket: bucket.buffer())
    found["second hook"] = message_of(lambda: model.register_comm_hook(None, _watch))
    found["no future"] = message_of(lambda: model(x).sum().backward())
    model = make(Looks)
    found["dense"] = message_of(lambda: model(treadle.tensor([1])).sum().backward())
    return found


ROWS = {
    "no_sync": _no_sync, "forwards": _several_forwards, "left out": _output_left_out,
    "unused": lambda rank, x: _unused(rank, x, find_unused_parameters=True),
    "static": lambda rank, x: _unused(rank, x, static_graph=True),
    "views": _views, "order": _order, "checkpoints": _checkpoints, "sparse": _sparse,
    "narrow": _narrow, "buffers": _buffers, "copies": _copies, "delayed": _delayed,
    "by hand": _by_hand, "groups": _groups, "mistakes": _mistakes,
}  # fmt: skip


def _all(rank: int, world: int) -> Dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: call(rank, shares()[rank].clone()) for name, call in ROWS.items()}


@pytest.fixture(scope="module")
def found() -> Dict[str, List[Any]]:
    first, second = together(2, _all)
    return {name: [first[name], second[name]] for name in first}


def expected(call: Callable[[nn.Module, treadle.Tensor], Any], kind: Any = Net) -> Dict[str, Any]:
    """Half of the gradients of one process with the whole batch."""
    treadle.manual_seed(0)
    net = kind()
    call(net, treadle.cat(shares())).sum().backward()
    return {name: None if g is None else g / 2 for name, g in grads(net).items()}


def expect(found: List[Dict[str, Any]], wanted: Dict[str, Any], rtol: float = 1e-5) -> None:
    for name, value in wanted.items():
        assert found[0][name].tobytes() == found[1][name].tobytes(), name
        np.testing.assert_allclose(found[0][name], value, rtol=rtol, atol=rtol, err_msg=name)


def whole(net: nn.Module, x: treadle.Tensor) -> treadle.Tensor:
    return net(x)


def test_gradients_of_accumulation_and_of_several_forwards(found: Any) -> None:
    (before, first), (other, second) = found["no_sync"]
    assert not np.allclose(before["first.weight"], other["first.weight"])
    expect([first, second], expected(whole))
    for step in range(2):
        expect([each[step] for each in found["forwards"]], expected(whole))


def test_unused_parameters(found: Any) -> None:
    for option in ("unused", "static"):
        first, second = found[option]
        for name, value in first.items():
            assert (value is None) == name.startswith("extra"), name
            assert value is None or value.tobytes() == second[name].tobytes()
        np.testing.assert_allclose(first["other.bias"], [2.0, 2.0])  # 4 in one process, 0 in one
    for step in range(2):
        first, second = (each[step] for each in found["left out"])
        for name in ("second.bias", "other.bias"):
            np.testing.assert_allclose(first[name], [2.0, 2.0])
            assert first[name].tobytes() == second[name].tobytes()


def test_views_delays_and_finalization_by_hand(found: Any) -> None:
    assert found["views"][0].keys() == expected(whole).keys()
    expect(found["delayed"], expected(whole))
    expect([each[0] for each in found["by hand"]], expected(whole))
    assert found["by hand"][0][1] == (
        "RuntimeError: DistributedDataParallel: expected finalize_backward() after the last "
        "backward(), as require_manual_backward_finalization is set, got no call"
    )


def test_the_first_process_orders_the_buckets(found: Any) -> None:
    first, second = found["order"]
    assert first == second
    assert [(number, is_last) for number, is_last, _ in first] == [
        (i, i == len(first) - 1) for i in range(len(first))
    ]
    names = [name[0] for _, _, parameters in first for name in parameters]
    assert names == ["c", "c", "a", "a", "b", "b"]


def test_checkpoints(found: Any) -> None:
    for case, value in found["checkpoints"][0].items():
        if case != "twice":
            wanted = expected(whole, lambda: Checkpointed(False))
            expect([value, found["checkpoints"][1][case]], wanted)
    assert found["checkpoints"][0]["twice"].startswith(
        "RuntimeError: DistributedDataParallel: expected one gradient of each parameter in a "
        "backward(), got a second of layer."
    )


def test_sparse_and_narrow_gradients(found: Any) -> None:
    wanted = np.zeros((6, 2), np.float32)
    wanted[[0, 1, 3]] = [[0.5], [1.0], [0.5]]
    for register in range(2):
        expect([{"weight": each[register]} for each in found["sparse"]], {"weight": wanted})
    for case in range(2):
        expect([each[case] for each in found["narrow"]], expected(whole), 0.05)


def test_buffers(found: Any) -> None:
    ((first, apart), named), ((second, other), _) = found["buffers"]
    assert first == second and apart != other
    assert named == [["1.running_mean", "1.running_var", "1.num_batches_tracked"]]


def test_groups(found: Any) -> None:
    (alone, text, shared, ignored), (other, _, shared_too, ignored_too) = found["groups"]
    assert not np.allclose(alone["first.weight"], other["first.weight"])
    assert text == (
        "RuntimeError: DistributedDataParallel: expected the group of all processes for a copy, "
        "got another"
    )
    expect([shared, shared_too], expected(whole))
    assert not np.allclose(ignored, ignored_too)


MISTAKES = {
    "unused": "RuntimeError: DistributedDataParallel: expected a gradient of every parameter in "
    "the last backward(), got none of 2 in rank 0: other.weight, other.bias\n"
    "Use all outputs of forward() in the loss. If the parameters take no part in it, set "
    "find_unused_parameters=True.",
    "static": "RuntimeError: DistributedDataParallel: expected the graph of the first backward(), "
    "as static_graph is set, got a gradient of other.bias, which had none",
    "shape": "RuntimeError: DistributedDataParallel: expected in rank 1 the parameters of rank 0, "
    "weight of shape (2, 2), strides (2, 1), float32, got weight of shape (3, 2), strides (2, 1), "
    "float32",
    "number": "RuntimeError: DistributedDataParallel: expected in rank 1 the parameters of rank 0, "
    "2 of them, got 4",
    "no hook": "TypeError: register_comm_hook: expected a callable hook, got int",
    "few": "ValueError: register_comm_hook: expected a hook of (state, bucket), got one of 1 "
    "arguments",
    "second hook": "RuntimeError: register_comm_hook: expected one hook, got a second beside "
    "<lambda>",
    "no future": "RuntimeError: DistributedDataParallel: expected the hook to return a "
    "torch.futures.Future, got Tensor",
    "dense": "RuntimeError: DistributedDataParallel: expected a dense gradient of weight, got a "
    "sparse one, which only the weights of Embedding and EmbeddingBag may have",
}


def test_mistakes(found: Any) -> None:
    texts = found["mistakes"][0]
    twice = texts.pop("twice").splitlines()
    assert texts == MISTAKES
    assert twice[0].startswith(
        "RuntimeError: DistributedDataParallel: expected one gradient of each parameter in a "
        "backward(), got a second of "
    )
    assert twice[-1].endswith("If the graph never changes, set static_graph=True.")


def test_mistakes_of_the_constructor() -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        DistributedDataParallel(nn.Linear(2, 2))
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    name = "DistributedDataParallel: expected"
    try:
        for options, message in (
            ({"device_ids": [0]}, f"{name} no device_ids for a module on the cpu, got [0]"),
            ({"output_device": 0}, f"{name} no output_device for a module on the cpu, got 0"),
            (
                {"delay_all_reduce_named_params": []},
                f"{name} delay_all_reduce_named_params and param_to_hook_all_reduce together, got "
                "one of them",
            ),
        ):
            assert message_of(lambda o=options: DistributedDataParallel(nn.Linear(1, 1), **o)) == (
                f"ValueError: {message}"
            )
        frozen = nn.Linear(2, 2).requires_grad_(False)
        assert "any parameters that require a gradient" in message_of(
            lambda: DistributedDataParallel(frozen)
        )
        lazy = message_of(lambda: DistributedDataParallel(nn.LazyLinear(2)))
        assert lazy == (
            f"RuntimeError: {name} parameters with a shape, got the uninitialized parameter "
            "weight: call the module once before"
        )
    finally:
        dist.destroy_process_group()
