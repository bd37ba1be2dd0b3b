"""quantize_dynamic(): layers with weights in eight bits that give floats."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import treadle
from treadle import nn
from treadle.ao import quantization as q
from treadle.ao.nn.quantized import dynamic as nnqd
from treadle.nn.utils.rnn import pack_padded_sequence


def _close(got: Any, wanted: Any, share: float = 0.05) -> None:
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    assert ((got - wanted).abs().max() / wanted.abs().max()).item() < share


@pytest.mark.parametrize("dtype", [treadle.qint8, treadle.float16])
def test_linear_layers(dtype: Any) -> None:
    treadle.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 4, bias=False))
    made = q.quantize_dynamic(model, dtype=dtype)
    assert [type(layer) for layer in made] == [nnqd.Linear, nn.ReLU, nnqd.Linear]
    assert type(model[0]) is nn.Linear and model.training and not made.training
    assert made[0].weight().dtype == dtype and made[2].bias() is None
    x = treadle.randn(7, 3, 20)
    _close(made(x), model(x))
    assert made(x[0, 0]).shape == (4,) and made(x[:0]).shape == (0, 3, 4)
    assert q.quantize_dynamic(model, dtype=dtype, inplace=True) is model


def test_which_layers() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)), nn.GRU(2, 2))

    def kinds(made: Any) -> Any:
        return [type(m) for m in (made[0], made[1][0], made[2])]

    only_linear = [nnqd.Linear, nnqd.Linear, nn.GRU]
    assert kinds(q.quantize_dynamic(model, {nn.Linear})) == only_linear
    assert kinds(q.quantize_dynamic(model, {"1"})) == [nn.Linear, nnqd.Linear, nn.GRU]
    by_channel = q.quantize_dynamic(model, {"0": q.per_channel_dynamic_qconfig})
    assert by_channel[0].weight().qscheme() == treadle.per_channel_affine
    assert kinds(by_channel) == [nnqd.Linear, nn.Linear, nn.GRU]
    skipped = {nn.Linear: q.default_dynamic_qconfig, "1": None}
    assert kinds(q.quantize_dynamic(model, skipped))[2] is nn.GRU


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_recurrent_layers(kind: Any, bidirectional: bool, batch_first: bool) -> None:
    treadle.manual_seed(1)
    layer = kind(6, 16, 2, bidirectional=bidirectional, batch_first=batch_first)
    made = q.quantize_dynamic(nn.ModuleList([layer]))[0]
    x = treadle.randn(4, 5, 6)
    wanted, state = layer(x)
    got, got_state = made(x)
    _close(got, wanted)
    states = (state, got_state) if kind is nn.GRU else (state[0], got_state[0])
    _close(states[1], states[0])
    if kind is nn.LSTM:
        _close(got_state[1], state[1])
    again, _ = made(x, got_state)
    _close(again, layer(x, state)[0], 0.08)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_sequences_of_several_lengths(kind: Any) -> None:
    treadle.manual_seed(2)
    layer = kind(6, 16, 2, bidirectional=True)
    made = q.quantize_dynamic(nn.ModuleList([layer]))[0]
    packed = pack_padded_sequence(treadle.randn(7, 4, 6), [3, 7, 1, 5], enforce_sorted=False)
    (wanted, state), (got, got_state) = layer(packed), made(packed)
    assert got.batch_sizes.tolist() == wanted.batch_sizes.tolist()
    _close(got.data, wanted.data)
    pair = (got_state, state) if kind is nn.GRU else (got_state[0], state[0])
    _close(*pair)
    _close(made(packed, got_state)[0].data, layer(packed, state)[0].data, 0.08)


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
@pytest.mark.parametrize("bias", [True, False])
def test_cells(kind: Any, bias: bool) -> None:
    treadle.manual_seed(3)
    cell = kind(6, 8, bias)
    made = q.quantize_dynamic(nn.ModuleList([cell]))[0]
    assert type(made).__name__ == kind.__name__ and type(made) is not kind
    for x in (treadle.randn(5, 6), treadle.randn(6)):
        wanted, got = cell(x), made(x)
        again = made(x, got)
        if kind is nn.LSTMCell:
            wanted, got, again = wanted[0], got[0], again[0]
        _close(got, wanted)
        assert again.shape == got.shape
    relu = q.quantize_dynamic(nn.ModuleList([nn.RNNCell(2, 2, nonlinearity="relu")]))[0]
    assert relu(treadle.ones(1, 2)).min().item() >= 0


def test_copies_pickles_states_and_text() -> None:
    treadle.manual_seed(4)

    def make() -> Any:
        model = nn.ModuleList([nn.LSTM(3, 4, 2), nn.GRUCell(3, 4), nn.Linear(3, 4)])
        return q.quantize_dynamic(model)

    made, other, x = make(), make(), treadle.randn(5, 2, 3)
    state = made.state_dict()
    assert [key for key in state if key.startswith("0.")] == [
        "0._all_weight_values.0.param",
        "0._all_weight_values.1.param",
    ]
    other.load_state_dict(state)
    for copied in (other, copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert treadle.equal(copied[0](x)[0], made[0](x)[0])
        assert treadle.equal(copied[1](x[0]), made[1](x[0]))
        assert treadle.equal(copied[2](x), made[2](x))
    assert repr(made) == (
        "ModuleList(\n"
        "  (0): DynamicQuantizedLSTM(3, 4, num_layers=2)\n"
        "  (1): DynamicQuantizedGRUCell(3, 4)\n"
        "  (2): DynamicQuantizedLinear(in_features=3, out_features=4, dtype=treadle.qint8, "
        "qscheme=treadle.per_tensor_affine)\n"
        ")"
    )
    assert sorted(made[0].get_weight()) == [
        "weight_hh_l0",
        "weight_hh_l1",
        "weight_ih_l0",
        "weight_ih_l1",
    ]
    assert made[0].get_bias()["bias_ih_l0"].shape == (16,)
    state["0._all_weight_values.0.param"] = (treadle.ones(2),)
    with pytest.raises(RuntimeError, match="expected weights and biases of shapes"):
        other.load_state_dict(state)


def test_no_batches() -> None:
    output, (h, _) = _lstm()(treadle.ones(5, 0, 3))
    assert output.shape == (5, 0, 4) and h.shape == (1, 0, 4)
    assert nnqd.LSTMCell(3, 4)(treadle.ones(0, 3))[0].shape == (0, 4)


def test_empty_layers_compute() -> None:
    output, state = nnqd.LSTM(3, 4)(treadle.randn(2, 1, 3))
    assert output.abs().max().item() == 0 and state[0].shape == (1, 1, 4)
    assert nnqd.GRUCell(3, 4)(treadle.randn(2, 3)).shape == (2, 4)
    half = nnqd.Linear(3, 4, dtype=treadle.float16)
    assert half.weight().dtype == treadle.float16 and half(treadle.ones(1, 3)).shape == (1, 4)


def _lstm() -> Any:
    return q.quantize_dynamic(nn.ModuleList([nn.LSTM(3, 4)]))[0]


REFUSED = {
    "dtype": (
        lambda: q.quantize_dynamic(nn.Linear(1, 1), dtype=treadle.float64),
        ValueError,
        "quantize_dynamic: expected dtype in treadle.qint8, treadle.float16, treadle.quint8, got "
        "treadle.float64",
    ),
    "input": (
        lambda: _lstm()(treadle.ones(2, 5)),
        RuntimeError,
        "DynamicQuantizedLSTM: expected an input of 3 dimensions, the last of size 3, got shape "
        "(2, 5)",
    ),
    "no steps": (
        lambda: _lstm()(treadle.ones(0, 1, 3)),
        RuntimeError,
        "DynamicQuantizedLSTM: expected one step or more, got none",
    ),
    "state": (
        lambda: _lstm()(treadle.ones(1, 2, 3), (treadle.ones(1, 2, 5), treadle.ones(1, 2, 4))),
        RuntimeError,
        "DynamicQuantizedLSTM: expected a state of shape (1, 2, 4), got (1, 2, 5)",
    ),
    "one state": (
        lambda: _lstm()(treadle.ones(2, 2, 3), treadle.ones(2, 1, 2, 4)),
        RuntimeError,
        "DynamicQuantizedLSTM: expected the 2 states h and c, got 1",
    ),
    "three states": (
        lambda: nnqd.LSTMCell(3, 4)(treadle.ones(2, 3), (treadle.ones(2, 4),) * 3),
        RuntimeError,
        "DynamicQuantizedLSTMCell: expected the 2 states h and c, got 3",
    ),
    "whole numbers": (
        lambda: nnqd.Linear(1, 1)(treadle.tensor([[1]])),
        TypeError,
        "a dynamically quantized layer: expected an input of floats, got treadle.int64",
    ),
    "dtype of weights": (
        lambda: nnqd.LSTM(1, 1, dtype=treadle.float32),
        AssertionError,
        "DynamicQuantizedLSTM: expected weights of treadle.qint8 or treadle.float16, got "
        "treadle.float32",
    ),
    "cell": (
        lambda: nnqd.GRUCell(3, 4)(treadle.ones(2, 2)),
        RuntimeError,
        "DynamicQuantizedGRUCell: expected an input of 1 or 2 dimensions, the last of size 3, got "
        "shape (2, 2)",
    ),
    "nonlinearity": (
        lambda: nnqd.RNNCell(1, 1, nonlinearity="sin"),
        ValueError,
        "RNNCell: expected 'tanh' or 'relu', got 'sin'",
    ),
    "projections": (
        lambda: q.quantize_dynamic(nn.ModuleList([nn.LSTM(3, 4, proj_size=2)])),
        AssertionError,
        "nn.quantized.dynamic.LSTM.from_float: expected proj_size=0, got 2",
    ),
    "weights": (
        lambda: q.quantize_dynamic(
            nn.ModuleList([nn.Linear(1, 1)]), {nn.Linear: q.float_qparams_weight_only_qconfig}
        ),
        AssertionError,
        "Linear: expected weights of treadle.qint8 or treadle.float16, got treadle.quint8",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message
