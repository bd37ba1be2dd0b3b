"""Calling again and again takes no more memory: each operator of the model, with gradients and with
arguments that are refused; modules, losses, optimisers, and what programs do around them.

Measured are the blocks that Python has handed out and the bytes that the C library has.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import ctypes
import functools
import gc
import io
import os
import pickle
import sys
from typing import Any, Callable, Iterator

import numpy as np
import pytest

import treadle
import treadle.nn.functional as F
from treadle import nn
from treadle_testing import cases
from treadle_testing.cases import has_samples, samples_of
from treadle_testing.catalogue import Operator, operators
from treadle_testing.check import tensors
from treadle_testing.sample import map_arrays, to_tensor

TIMES = (20, 20, 200, 400)


class _MallInfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
        )
    ]


def _mallinfo() -> Callable[[], Any]:
    # The sanitizers have an allocator of their own; they find leaks by themselves.
    if os.environ.get("TREADLE_SANITIZERS") or not hasattr(ctypes.CDLL(None), "mallinfo2"):
        return lambda: _MallInfo()
    function = ctypes.CDLL(None).mallinfo2
    function.restype = _MallInfo
    return function


mallinfo = _mallinfo()


def in_use() -> tuple[int, int]:
    """(blocks of Python's, bytes of the C library's) that are in use."""
    info = mallinfo()
    return sys.getallocatedblocks(), info.uordblks + info.hblkhd


@pytest.fixture(autouse=True, scope="module")
def _quick_collections() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def growth(call: Callable[[], Any]) -> tuple[float, float]:
    """(blocks, bytes) that a call leaves behind. Caches do not grow for ever, so the least of some
    rounds counts, the later ones longer."""
    for _ in range(3):
        call()
    least_blocks, least_bytes = float("inf"), float("inf")
    for times in TIMES:
        gc.collect()
        blocks, taken = in_use()
        for _ in range(times):
            call()
        gc.collect()
        blocks_after, taken_after = in_use()
        least_blocks = min(least_blocks, (blocks_after - blocks) / times)
        least_bytes = min(least_bytes, (taken_after - taken) / times)
        if least_blocks < 0.5 and least_bytes < 16:
            break
    return least_blocks, least_bytes


def assert_flat(call: Callable[[], Any], what: str) -> None:
    blocks, taken = growth(call)
    assert blocks < 0.5 and taken < 16, f"{what}: each call leaves {blocks} objects, {taken} bytes"


# ---- operators -----------------------------------------------------------------------------------


def calls_of(op: Operator) -> Iterator[tuple[Callable[[], Any], str]]:
    """Calls with samples, with gradients where there are some, and with arguments that are
    refused."""
    dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
    for n, sample in zip(range(2), samples_of(op, dtype)):
        args = map_arrays(sample.args, lambda a: to_tensor(a, dtype))
        kwargs = {k: map_arrays(v, lambda a: to_tensor(a, dtype)) for k, v in sample.kwargs.items()}
        given = [t for t in tensors([*args, *kwargs.values()]) if t.is_floating_point()]
        # An operator that only writes returns nothing that could have a gradient.
        if not op.name.endswith("_") and op.json["returns"]:
            for t in given:
                t.requires_grad_()

        def call() -> None:
            given_now = _copies(args) if op.name.endswith("_") else args
            results = [t for t in tensors(op.function(*given_now, **kwargs)) if t.requires_grad]
            if results:
                try:
                    treadle.autograd.grad(
                        [t.abs().sum() for t in results], given, allow_unused=True
                    )
                except (NotImplementedError, RuntimeError):
                    pass  # no derivative, of any or of these arguments

        yield call, f"{op.id}, sample {n}"
        if n > 0:
            continue
        for i in range(len(args) + 2):
            wrong_args = (*args[:i], "wrong", *args[i + 1 :]) if i < len(args) else args
            wrong_kwargs = {**kwargs, "wrong": 1} if i == len(args) else kwargs
            if i == len(args) + 1:
                wrong_args = tuple(_wrongly_shaped(a) for a in args)

            def refused() -> None:
                try:
                    op.function(*_copies(wrong_args), **wrong_kwargs)
                except (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError):
                    pass

            yield refused, f"{op.id}, refused in place {i}"


def _copies(args: Any) -> list:
    """In-place operators may give their argument another shape."""
    return [a.detach().clone() if isinstance(a, treadle.Tensor) else a for a in args]


def _wrongly_shaped(value: Any) -> Any:
    if not isinstance(value, treadle.Tensor) or value.dim() > 6:
        return value
    with treadle.no_grad():
        return treadle.zeros([n + 1 + i for i, n in enumerate(value.shape)], dtype=value.dtype)


OPERATORS = [op for op in operators() if cases.in_suite(op) and has_samples(op)]
GROUPS = 16


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_operators(group: int) -> None:
    failed = []
    for op in OPERATORS[group::GROUPS]:
        for call, what in calls_of(op):
            blocks, taken = growth(call)
            if not (blocks < 0.5 and taken < 16):
                failed.append(f"{what}: each call leaves {blocks} objects, {taken} bytes")
    assert not failed, "\n".join(failed)


# ---- modules and losses --------------------------------------------------------------------------

x = treadle.randn(4, 6)
active = treadle.randn(4, 6, requires_grad=True)
image = treadle.randn(2, 3, 8, 8, requires_grad=True)
words = treadle.tensor([[1, 2, 3], [3, 2, 1]])
MODULES: dict[str, tuple[Callable[[], nn.Module], tuple]] = {
    "Linear": (lambda: nn.Linear(6, 3), (x,)),
    "Bilinear": (lambda: nn.Bilinear(6, 6, 2), (x, x)),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3), (image,)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(3, 4, 3), (image,)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), (image,)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), (image,)),
    "LayerNorm": (lambda: nn.LayerNorm(6), (x,)),
    "GroupNorm": (lambda: nn.GroupNorm(3, 3), (image,)),
    "Dropout": (lambda: nn.Dropout(), (active,)),
    "Embedding": (lambda: nn.Embedding(5, 4), (words,)),
    "EmbeddingBag": (lambda: nn.EmbeddingBag(5, 4), (words,)),
    "LSTM": (lambda: nn.LSTM(6, 3, batch_first=True), (x[None],)),
    "GRU": (lambda: nn.GRU(6, 3, batch_first=True), (x[None],)),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(6, 2), (x[None], x[None], x[None])),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(6, 2, 8), (x[None],)),
    "Sequential": (lambda: nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Softmax(1)), (x,)),
    "Upsample": (lambda: nn.Upsample(scale_factor=2), (image,)),
    "CrossMapLRN": (lambda: nn.LocalResponseNorm(2), (image,)),
    "weight_norm": (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(6, 3)), (x,)),
    "spectral_norm": (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(6, 3)), (x,)),
    "MSELoss": (lambda: nn.MSELoss(), (x.clone().requires_grad_(), x)),
    "CrossEntropyLoss": (
        lambda: nn.CrossEntropyLoss(),
        (x.clone().requires_grad_(), treadle.tensor([0, 1, 2, 3])),
    ),
    "CTCLoss": (
        lambda: nn.CTCLoss(),
        (
            treadle.randn(5, 2, 4, requires_grad=True).log_softmax(2).detach().requires_grad_(),
            treadle.tensor([[1, 2], [2, 1]]),
            treadle.tensor([5, 5]),
            treadle.tensor([2, 2]),
        ),
    ),
}


def loss_of(result: Any) -> treadle.Tensor:
    return sum(t.float().sum() for t in tensors(result) if t.requires_grad)


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    make, arguments = MODULES[name]
    module = make()

    def train() -> None:
        loss_of(module(*arguments)).backward()
        module.zero_grad()

    assert_flat(train, name)
    if name in ("LayerNorm", "LSTM", "spectral_norm", "Sequential"):
        assert_flat(lambda: make()(*arguments), f"a new {name}")
        assert_flat(lambda: copy.deepcopy(module), f"deepcopy of {name}")
        assert_flat(lambda: module.load_state_dict(module.state_dict()), f"state of {name}")

    def refused() -> None:
        try:
            module("wrong")
        except (TypeError, AttributeError, RuntimeError, ValueError):
            pass

    assert_flat(refused, f"{name}, refused")


HOOKS = {
    "forward": lambda m: m.register_forward_hook(lambda *a: None),
    "forward_pre": lambda m: m.register_forward_pre_hook(lambda *a: None),
    "full_backward": lambda m: m.register_full_backward_hook(lambda *a: None),
    "full_backward_pre": lambda m: m.register_full_backward_pre_hook(lambda *a: None),
    "parameter": lambda m: m.weight.register_hook(lambda g: g),
    "accumulated": lambda m: m.weight.register_post_accumulate_grad_hook(lambda p: None),
}


@pytest.mark.parametrize("kind", HOOKS)
@pytest.mark.parametrize("backward", [False, True])
def test_hooks(kind: str, backward: bool) -> None:
    module = nn.Linear(6, 6)
    handle = HOOKS[kind](module)
    inputs = x.clone().requires_grad_()

    def forward() -> None:
        result = module(inputs)
        if backward:
            result.sum().backward()
            module.zero_grad()
            inputs.grad = None

    assert_flat(forward, f"a module with a {kind} hook")
    handle.remove()
    assert_flat(lambda: HOOKS[kind](module).remove(), f"registering a {kind} hook")


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS", "NAdam"])
def test_optimisers(name: str) -> None:
    module = nn.Linear(6, 3)
    optimiser = getattr(treadle.optim, name)(module.parameters(), lr=1e-3)

    def closure() -> treadle.Tensor:
        optimiser.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        return loss

    for _ in range(120):  # LBFGS keeps a history of 100
        optimiser.step(closure)
    assert_flat(lambda: optimiser.step(closure), name)
    assert_flat(lambda: optimiser.load_state_dict(optimiser.state_dict()), f"state of {name}")


# ---- programs ------------------------------------------------------------------------------------


class Exp(treadle.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: treadle.Tensor) -> treadle.Tensor:
        result = x.exp()
        ctx.save_for_backward(result)
        ctx.anything = [result]
        return result

    @staticmethod
    def backward(ctx: Any, grad: treadle.Tensor) -> treadle.Tensor:
        return grad * ctx.saved_tensors[0]


class Named(treadle.Tensor):
    pass


def _saved() -> None:
    file = io.BytesIO()
    treadle.save({"x": x}, file)
    file.seek(0)
    treadle.load(file)


def _raising_hook() -> None:
    y = leaf() * 2
    y.register_hook(lambda grad: 1 / 0)
    try:
        y.sum().backward()
    except ZeroDivisionError:
        pass


def _raising_backward() -> None:
    class Bad(Exp):
        @staticmethod
        def backward(ctx: Any, grad: treadle.Tensor) -> treadle.Tensor:
            raise KeyError("no")

    try:
        Bad.apply(leaf()).sum().backward()
    except KeyError:
        pass


def _attributes() -> None:
    t = leaf()
    t.name, t.me = "a", t
    (t * t).sum().backward()
    t.grad.owner = t


def _packed() -> None:
    with treadle.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda box: box[0]):
        (leaf() ** 2).sum().backward()


def _autocast() -> None:
    with treadle.autocast("cpu", dtype=treadle.bfloat16):
        (leaf().reshape(1, -1) @ x[:1].T[:3]).sum().backward()


def _printed() -> None:
    repr(x), str(x.int()), f"{x.sum():.2f}", repr(leaf() * 2)


def _indexed() -> None:
    y = leaf()
    y[0], y[1:], y[[0, 1]], y[y > 0], y[None, ..., 0]
    z = x.clone()
    z[0] = 1
    z[z > 0] = 0
    z[[0, 1], 2] = treadle.tensor([1.0, 2.0])


def _exchanged() -> None:
    treadle.from_numpy(np.ones(3))
    treadle.tensor(np.ones(3)), treadle.tensor([[1, 2], [3, 4]]), np.asarray(x), x.numpy()
    treadle.from_dlpack(x), np.from_dlpack(x), treadle.frombuffer(bytearray(8), dtype=treadle.int32)
    x.tolist(), x.sum().item(), memoryview(x.untyped_storage()).nbytes


def _converted() -> None:
    x.double(), x.to(treadle.int32), x.to(x.int()), x.cpu(), x.type(), x.type(treadle.half)


def _subclass() -> None:
    t = x.as_subclass(Named)
    t.label = "a"
    (t + t).sum(), t[0], treadle.stack([t, t])
    copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))


def _graph() -> None:
    y = (leaf() * 2).exp()
    node = y.grad_fn
    node.metadata["a"] = y.shape
    node.next_functions[0][0].next_functions, node._saved_result, dir(node), node.name()
    y.sum().backward()


def _double() -> None:
    t = leaf()
    (g,) = treadle.autograd.grad((t**3).sum(), t, create_graph=True)
    g.sum().backward()


def _transforms() -> None:
    treadle.func.grad(lambda t: t.sin().sum())(x)
    treadle.func.vmap(treadle.sin)(x)
    treadle.func.jvp(treadle.sin, (x,), (x,))


def _loaded() -> None:
    dataset = treadle.utils.data.TensorDataset(x)
    for _ in treadle.utils.data.DataLoader(dataset, batch_size=2, shuffle=True):
        pass


def _clipped() -> None:
    p = nn.Parameter(x.clone())
    p.square().sum().backward()
    nn.utils.clip_grad_norm_([p], 1.0)


def leaf() -> treadle.Tensor:
    return treadle.ones(3, requires_grad=True)


PROGRAMS = {
    f.__name__: f
    for f in (
        _saved, _raising_hook, _raising_backward, _attributes, _packed, _autocast, _printed,
        _indexed, _exchanged, _converted, _subclass, _graph, _double, _transforms, _loaded,
        _clipped,
    )
}  # fmt: skip
PROGRAMS["_custom"] = lambda: Exp.apply(leaf()).sum().backward()
PROGRAMS["_pickled"] = lambda: pickle.loads(pickle.dumps((x, nn.Parameter(x), treadle.float32)))
PROGRAMS["_losses"] = lambda: F.cross_entropy(x, treadle.tensor([0, 1, 2, 3]))
PROGRAMS["_partial"] = lambda: functools.partial(treadle.add, x)(x)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    assert_flat(PROGRAMS[name], name)
