"""On a CUDA device: recurrent layers are computed whole, by cuDNN, with the results and gradients
that the CPU has step by step; what differentiates twice, or asks for it, goes step by step.

    pytest tests/gpu/on_recurrent.py       # ./dev gpu says how, on a machine with a GPU
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any, Iterator

import pytest

import treadle
from treadle import nn
from treadle.nn.utils import rnn

KINDS = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "tanh": nn.RNN,
    "relu": lambda *args, **options: nn.RNN(*args, nonlinearity="relu", **options),
}
FORMS: dict[str, dict[str, Any]] = {
    "one layer": {},
    "without biases": {"bias": False},
    "three layers": {"num_layers": 3},
    "both directions": {"num_layers": 2, "bidirectional": True},
    "batch first": {"batch_first": True},
}


@pytest.fixture(autouse=True)
def _exact() -> Iterator[None]:
    with treadle.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def whole_layers() -> int:
    """How often cuDNN was asked."""
    return treadle.backends.coverage("cuda")["native"].get("_recurrent_layers", 0)


def states_of(state: Any) -> list:
    return list(state) if isinstance(state, tuple) else [state]


def run(layer: nn.Module, x: Any, start: Any) -> list:
    """Outputs, states, and gradients of everything by sums with fixed weights."""
    output, end = layer(x, start)
    values = [output.data if isinstance(output, rnn.PackedSequence) else output, *states_of(end)]
    total = sum(
        (v * treadle.linspace(-1, 1, v.numel(), dtype=v.dtype, device=v.device).view(v.shape)).sum()
        for v in values
    )
    data = x.data if isinstance(x, rnn.PackedSequence) else x
    leaves = [*layer.parameters(), *states_of(start), *([data] if data.requires_grad else [])]
    return values + list(treadle.autograd.grad(total, leaves))


def both(layer: nn.Module, x: Any, start: Any) -> tuple:
    """Results on the CPU and on the device."""
    there = copy.deepcopy(layer).to("cuda")

    def moved(t: Any) -> Any:
        return t.detach().to("cuda").requires_grad_(t.requires_grad)

    start_there = tuple(map(moved, start)) if isinstance(start, tuple) else moved(start)
    x_there = x.to("cuda") if isinstance(x, rnn.PackedSequence) else moved(x)
    got = run(there, x_there, start_there)
    assert got[1].grad_fn.name() == "RecurrentLayersBackward0"  # cudnn took it
    return run(layer, x, start), [t.cpu() for t in got]


def start_of(layer: Any, kind: str, batch: int, dtype: Any) -> Any:
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    h = treadle.randn(count, batch, layer.proj_size or layer.hidden_size, dtype=dtype)
    if kind != "lstm":
        return h.requires_grad_()
    c = treadle.randn(count, batch, layer.hidden_size, dtype=dtype)
    return h.requires_grad_(), c.requires_grad_()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_results_and_gradients(kind: str, form: str) -> None:
    treadle.manual_seed(0)
    layer = KINDS[kind](5, 8, dtype=treadle.float64, **FORMS[form])
    x = treadle.randn(4, 3, 5, dtype=treadle.float64, requires_grad=True)
    start = start_of(layer, kind, 4 if layer.batch_first else 3, treadle.float64)
    for expected, got in zip(*both(layer, x, start)):
        treadle.testing.assert_close(got, expected)


@pytest.mark.parametrize("dtype", [treadle.float32, treadle.float16, treadle.bfloat16], ids=str)
@pytest.mark.parametrize("units", [16, 128, 640])  # one kernel for all steps, one that stays, many
@pytest.mark.parametrize("kind", KINDS)
def test_dtypes(kind: str, units: int, dtype: Any) -> None:
    """Beside the CPU's float64. In float32, layers with a sigmoid or tanh were up to 104 epsilon
    off on an H200, those with a relu less than 30."""
    treadle.manual_seed(1)
    layer = KINDS[kind](128, units, dtype=dtype)
    x = treadle.randn(6, 8, 128, dtype=dtype, requires_grad=True)
    start = start_of(layer, kind, 8, dtype)
    _, got = both(layer, x, start)
    wide = copy.deepcopy(layer).double()
    wide_start = tuple(s.detach().double().requires_grad_() for s in states_of(start))
    expected = run(
        wide,
        x.detach().double().requires_grad_(),
        wide_start if kind == "lstm" else wide_start[0],
    )
    is_curved = kind != "relu"
    bound = treadle.finfo(dtype).eps * (200 if is_curved and dtype == treadle.float32 else 30)
    # In float16, rounding decides on which side of 0 the argument of a relu is, and so its slope.
    results = 2 if not is_curved and dtype == treadle.float16 else len(got)
    for e, g in list(zip(expected, got))[:results]:
        assert (g.double() - e).abs().max().item() < bound * e.abs().max().item()


@pytest.mark.parametrize("directions", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences(kind: str, directions: bool) -> None:
    treadle.manual_seed(2)
    layer = KINDS[kind](5, 8, 2, bidirectional=directions, dtype=treadle.float64)
    x = rnn.pack_sequence([treadle.randn(n, 5, dtype=treadle.float64) for n in (6, 4, 4, 1)])
    for expected, got in zip(*both(layer, x, start_of(layer, kind, 4, treadle.float64))):
        treadle.testing.assert_close(got, expected)


def test_projections() -> None:
    treadle.manual_seed(3)
    layer = nn.LSTM(5, 8, 2, proj_size=3, bidirectional=True, dtype=treadle.float64)
    x = treadle.randn(4, 3, 5, dtype=treadle.float64, requires_grad=True)
    for expected, got in zip(*both(layer, x, start_of(layer, "lstm", 3, treadle.float64))):
        treadle.testing.assert_close(got, expected)


def test_dropout_draws_what_it_draws_step_by_step() -> None:
    layer = nn.LSTM(5, 8, 3, dropout=0.5, device="cuda")
    x = treadle.randn(4, 3, 5, device="cuda")
    outputs = []
    for enabled in (True, False):
        with treadle.backends.cudnn.flags(enabled=enabled, allow_tf32=False):
            treadle.manual_seed(4)
            outputs.append(layer(x)[0])
    treadle.testing.assert_close(*outputs)
    layer.eval()
    treadle.testing.assert_close(layer(x)[0], layer(x)[0])


def test_layers_in_eval_mode_have_gradients() -> None:
    layer = nn.GRU(5, 8, device="cuda").eval()
    x = treadle.randn(4, 3, 5, device="cuda", requires_grad=True)
    layer(x)[0].sum().backward()
    assert x.grad.abs().sum() > 0 and layer.weight_hh_l0.grad.abs().sum() > 0


def test_a_graph_that_is_kept_has_the_same_gradients_again() -> None:
    layer = nn.LSTM(5, 8, 2, device="cuda")
    x = treadle.randn(4, 3, 5, device="cuda")
    output = layer(x)[0]
    assert output.grad_fn.name() == "RecurrentLayersBackward0"
    weights = list(layer.parameters())
    first = treadle.autograd.grad(output.sum(), weights, retain_graph=True)
    for a, b in zip(first, treadle.autograd.grad(output.sum(), weights)):
        assert treadle.equal(a, b)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_gradients(kind: str) -> None:
    treadle.manual_seed(5)
    layer = KINDS[kind](3, 4, 2, dtype=treadle.float64)
    x = treadle.randn(3, 2, 3, dtype=treadle.float64)

    def twice(layer: nn.Module, x: Any) -> list:
        x = x.requires_grad_()
        output = layer(x)[0]
        (slope,) = treadle.autograd.grad((output**3).sum(), x, create_graph=True)
        return [slope, *treadle.autograd.grad((slope**2).sum(), [x, layer.weight_hh_l1])]

    expected = twice(copy.deepcopy(layer), x.clone())
    for e, g in zip(expected, twice(layer.to("cuda"), x.to("cuda"))):
        treadle.testing.assert_close(g.cpu(), e)


def test_frozen_weights() -> None:
    layer = nn.LSTM(5, 8, device="cuda").requires_grad_(False)
    x = treadle.randn(4, 3, 5, device="cuda", requires_grad=True)
    layer(x)[0].sum().backward()
    assert x.grad.abs().sum() > 0 and layer.weight_ih_l0.grad is None
    with treadle.no_grad():
        assert layer(x)[0].grad_fn is None


def test_the_same_bits_each_time() -> None:
    layer = nn.LSTM(64, 256, 2, bidirectional=True, device="cuda")
    x = treadle.randn(20, 16, 64, device="cuda")
    results = []
    for _ in range(2):
        layer.zero_grad()
        output = layer(x)[0]
        output.square().sum().backward()
        results.append([output, *(p.grad.clone() for p in layer.parameters())])
    assert all(treadle.equal(a, b) for a, b in zip(*results))


def test_autocast() -> None:
    layer = nn.LSTM(5, 8, device="cuda")
    x = treadle.randn(4, 3, 5, device="cuda")
    before = whole_layers()
    with treadle.autocast("cuda", dtype=treadle.bfloat16):
        output = layer(x)[0]
    assert output.dtype == treadle.bfloat16 and whole_layers() == before + 1
    output.float().sum().backward()
    assert layer.weight_hh_l0.grad.dtype == treadle.float32


def test_step_by_step_where_cudnn_is_off() -> None:
    layer = nn.LSTM(5, 8, device="cuda")
    x = treadle.randn(4, 3, 5, device="cuda")
    before = whole_layers()
    with treadle.backends.cudnn.flags(enabled=False):
        stepwise = layer(x)[0]
    assert whole_layers() == before
    treadle.testing.assert_close(layer(x)[0], stepwise)
