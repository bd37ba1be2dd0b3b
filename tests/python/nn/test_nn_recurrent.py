"""Recurrent layers and packed sequences, against NumPy in float64 step by step."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nn_arrays import normal

import treadle as torch
from treadle import nn
from treadle.autograd import gradcheck, gradgradcheck
from treadle.nn.utils import rnn
from treadle_testing.families.recurrent import sequence, step

KINDS = [(nn.LSTM, "lstm"), (nn.GRU, "gru"), (nn.RNN, "tanh")]


def _weights(layer: nn.Module) -> list:
    return [w.detach().numpy() for weights in layer.all_weights for w in weights]


@pytest.mark.parametrize("cls, kind", KINDS)
@pytest.mark.parametrize(
    "layers, both, biases", [(1, False, True), (2, True, True), (2, False, False)]
)
def test_layer(cls: Any, kind: str, layers: int, both: bool, biases: bool) -> None:
    torch.manual_seed(0)
    layer = cls(3, 4, layers, bias=biases, bidirectional=both, dtype=torch.float64)
    x = normal(5, 2, 3)
    output, state = layer(x)
    zeros = np.zeros((layers * (2 if both else 1), 2, 4))
    states = (zeros, zeros) if kind == "lstm" else (zeros,)
    want, ends = sequence(kind, list(x.numpy()), states, _weights(layer), biases, layers, both)
    np.testing.assert_allclose(output.detach().numpy(), np.stack(want), rtol=1e-9)
    got = state if kind == "lstm" else (state,)
    for g, w in zip(got, ends):
        np.testing.assert_allclose(g.detach().numpy(), w, rtol=1e-9)


def test_relu_and_projection() -> None:
    layer = nn.RNN(3, 4, nonlinearity="relu", dtype=torch.float64)
    x = normal(5, 2, 3)
    want, _ = sequence(
        "relu", list(x.numpy()), (np.zeros((1, 2, 4)),), _weights(layer), True, 1, False
    )
    np.testing.assert_allclose(layer(x)[0].detach().numpy(), np.stack(want), rtol=1e-9)
    layer = nn.LSTM(3, 4, 2, proj_size=2, dtype=torch.float64)
    states = (np.zeros((2, 2, 2)), np.zeros((2, 2, 4)))
    want, ends = sequence("lstm", list(x.numpy()), states, _weights(layer), True, 2, False)
    output, (h, c) = layer(x)
    np.testing.assert_allclose(output.detach().numpy(), np.stack(want), rtol=1e-9)
    assert h.shape == (2, 2, 2) and c.shape == (2, 2, 4)
    np.testing.assert_allclose(c.detach().numpy(), ends[1], rtol=1e-9)


@pytest.mark.parametrize("cls, kind", KINDS)
def test_batch_first_and_one_sample(cls: Any, kind: str) -> None:
    layer = cls(3, 4, batch_first=True)
    x = torch.randn(2, 5, 3)
    batched, state = layer(x)
    assert batched.shape == (2, 5, 4)
    alone, end = layer(x[1])
    torch.testing.assert_close(alone, batched[1])
    pairs = zip(end, state) if kind == "lstm" else [(end, state)]
    for one, all_ in pairs:
        assert one.shape == (1, 4)
        torch.testing.assert_close(one, all_[:, 1])
    given = (torch.ones(1, 4), torch.ones(1, 4)) if kind == "lstm" else torch.ones(1, 4)
    assert layer(x[0], given)[0].shape == (5, 4)


@pytest.mark.parametrize("cls, kind", KINDS)
@pytest.mark.parametrize("both", [False, True])
def test_packed(cls: Any, kind: str, both: bool) -> None:
    """A packed batch gives each sequence what it gives alone."""
    torch.manual_seed(1)
    layer = cls(3, 4, 2, bidirectional=both, dtype=torch.float64)
    sequences = [normal(n, 3) for n in (2, 5, 3)]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    output, state = layer(packed)
    assert isinstance(output, rnn.PackedSequence)
    states = state if kind == "lstm" else (state,)
    for i, (sequence_, out) in enumerate(zip(sequences, rnn.unpack_sequence(output))):
        alone, end = layer(sequence_)
        torch.testing.assert_close(out, alone)
        for s, e in zip(states, end if kind == "lstm" else (end,)):
            torch.testing.assert_close(s[:, i], e)


def _gradients_are_right(layer: nn.Module, packed: bool) -> bool:
    x = normal(5, 3, 2).requires_grad_()

    def outputs(x: Any, *weights: Any) -> list:
        given = rnn.pack_padded_sequence(x, torch.tensor([5, 3, 1])) if packed else x
        output, state = layer(given)
        states = state if isinstance(state, tuple) else (state,)
        return [output.data if packed else output, *states]

    arguments = (x, *layer.parameters())
    return gradcheck(outputs, arguments) and gradgradcheck(outputs, arguments)


@pytest.mark.parametrize("packed", [False, True], ids=["whole", "packed"])
@pytest.mark.parametrize("layers, both, biases", [(1, True, False), (2, False, True)])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "tanh", "relu"])
def test_gradients(kind: str, layers: int, both: bool, biases: bool, packed: bool) -> None:
    torch.manual_seed(0)
    cls, options = (nn.RNN, {"nonlinearity": kind}) if kind.islower() else (getattr(nn, kind), {})
    layer = cls(2, 2, layers, bias=biases, bidirectional=both, dtype=torch.float64, **options)
    assert _gradients_are_right(layer, packed)


def test_tensors_on_several_devices() -> None:
    layer = nn.LSTM(2, 3)
    with pytest.raises(RuntimeError) as error:
        layer(torch.zeros(4, 1, 2, device="meta"))
    assert str(error.value) == (
        "lstm: expected all tensors on one device, got input on meta and weight 0 on cpu"
    )
    with pytest.raises(RuntimeError) as error:
        layer(torch.zeros(4, 1, 2), (torch.zeros(1, 1, 3, device="meta"), torch.zeros(1, 1, 3)))
    assert str(error.value) == (
        "lstm: expected all tensors on one device, got input on cpu and the hidden state on meta"
    )


def test_training_learns_to_add() -> None:
    """The sum of a sequence, far better than the best constant guess, within 200 steps."""
    torch.manual_seed(0)
    layer, head = nn.GRU(1, 16, batch_first=True), nn.Linear(16, 1)
    optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=0.02)
    x = torch.rand(64, 6, 1)
    losses = []
    for _ in range(200):
        loss = nn.functional.mse_loss(head(layer(x)[0][:, -1]), x.sum(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.05 * x.sum(1).var().item()


@pytest.mark.parametrize(
    "cls, kind", [(nn.LSTMCell, "lstm"), (nn.GRUCell, "gru"), (nn.RNNCell, "tanh")]
)
def test_cell(cls: Any, kind: str) -> None:
    cell = cls(3, 4, dtype=torch.float64)
    x, h = normal(2, 3), normal(2, 4)
    state = (h, normal(2, 4)) if kind == "lstm" else (h,)
    w = [
        getattr(cell, n).detach().numpy() for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]
    want = step(kind, x.numpy(), [s.numpy() for s in state], [*w, None])
    got = cell(x, state if kind == "lstm" else h)
    for g, e in zip(got if kind == "lstm" else (got,), want):
        np.testing.assert_allclose(g.detach().numpy(), e, rtol=1e-9)
    start = cell(x)
    zero = torch.zeros(2, 4, dtype=torch.float64)
    again = cell(x, (zero, zero) if kind == "lstm" else zero)
    torch.testing.assert_close(start, again)
    one = cell(x[0], tuple(s[0] for s in state) if kind == "lstm" else h[0])
    for g, e in zip(one if kind == "lstm" else (one,), got if kind == "lstm" else (got,)):
        torch.testing.assert_close(g, e[0])


def test_names_reprs_and_state() -> None:
    layer = nn.LSTM(10, 20, num_layers=2, dropout=0.5, batch_first=True, bidirectional=True)
    assert (
        repr(layer)
        == "LSTM(10, 20, num_layers=2, batch_first=True, dropout=0.5, bidirectional=True)"
    )
    assert list(layer.state_dict())[:8] == [
        "weight_ih_l0",
        "weight_hh_l0",
        "bias_ih_l0",
        "bias_hh_l0",
        "weight_ih_l0_reverse",
        "weight_hh_l0_reverse",
        "bias_ih_l0_reverse",
        "bias_hh_l0_reverse",
    ]
    assert layer.weight_ih_l1.shape == (80, 40)
    assert repr(nn.GRUCell(3, 4)) == "GRUCell(3, 4)"
    assert repr(nn.RNNCell(3, 4, bias=False, nonlinearity="relu")) == (
        "RNNCell(3, 4, bias=False, nonlinearity=relu)"
    )
    other = nn.LSTM(10, 20, num_layers=2, dropout=0.5, batch_first=True, bidirectional=True)
    other.load_state_dict(layer.state_dict())
    x = torch.randn(2, 3, 10)
    torch.testing.assert_close(layer.eval()(x)[0], other.eval()(x)[0])
    bound = 1 / 20**0.5
    assert all(bool((w.abs() <= bound).all()) for w in layer.parameters())


def test_dropout_between_layers() -> None:
    layer = nn.GRU(3, 8, 2, dropout=0.5)
    x = torch.randn(4, 2, 3)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])
    with pytest.warns(UserWarning, match="dropout option adds dropout"):
        nn.GRU(3, 8, dropout=0.5)


def test_pack_and_pad() -> None:
    batch = torch.arange(12.0).reshape((2, 3, 2))
    packed = rnn.pack_padded_sequence(batch, torch.tensor([3, 2]), batch_first=True)
    assert packed.batch_sizes.tolist() == [2, 2, 1]
    assert packed.data.tolist() == [[0, 1], [6, 7], [2, 3], [8, 9], [4, 5]]
    padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1.0)
    assert lengths.tolist() == [3, 2]
    assert padded[0].tolist() == batch[0].tolist() and padded[1, 2].tolist() == [-1, -1]
    longer, _ = rnn.pad_packed_sequence(packed, total_length=5)
    assert longer.shape == (5, 2, 2)
    assert packed.to(torch.float64).data.dtype == torch.float64
    assert packed.double().batch_sizes is packed.batch_sizes
    left = rnn.pad_sequence([torch.ones(1), torch.ones(3)], batch_first=True, padding_side="left")
    assert left.tolist() == [[0, 0, 1], [1, 1, 1]]
    parts = rnn.unpad_sequence(left, torch.tensor([3, 2]), batch_first=True)
    assert [p.shape[0] for p in parts] == [3, 2]
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        rnn.pack_padded_sequence(batch, [2, 3], batch_first=True)
    with pytest.raises(RuntimeError, match="greater than 0"):
        rnn.pack_padded_sequence(batch, [2, 0], batch_first=True)
    with pytest.raises(ValueError, match="total_length"):
        rnn.pad_packed_sequence(packed, total_length=2)


def test_wrong_input() -> None:
    layer = nn.LSTM(3, 4)
    with pytest.raises(RuntimeError, match="input.size"):
        layer(torch.randn(5, 2, 2))
    with pytest.raises(RuntimeError, match="Expected hidden"):
        layer(torch.randn(5, 2, 3), (torch.zeros(1, 3, 4), torch.zeros(1, 3, 4)))
    with pytest.raises(ValueError, match="2D or 3D"):
        layer(torch.randn(5))
    with pytest.raises(RuntimeError, match="lstm: expected a sequence of at least 1 step"):
        layer(torch.randn(0, 2, 3))
    with pytest.raises(ValueError, match="proj_size"):
        nn.GRU(3, 4, proj_size=2)
    with pytest.raises(ValueError, match="hidden_size must be greater"):
        nn.LSTM(3, 0)
    data, weights = torch.randn(3, 3), [torch.randn(4, 3), torch.randn(4, 4)]
    for sizes in ([2, 2], [1, 2], [3, 0], [-1, 4]):
        with pytest.raises(RuntimeError, match="batch_sizes"):
            torch.rnn_tanh(
                data,
                torch.tensor(sizes),
                torch.zeros(1, max(1, sizes[0]), 4),
                weights,
                False,
                1,
                0.0,
                False,
                False,
            )


def test_packed_sequences_are_converted_to_every_type():
    packed = rnn.pack_padded_sequence(torch.arange(6).view(3, 2).float(), [3, 1])
    for name, dtype in (("byte", "uint8"), ("char", "int8"), ("short", "int16"), ("int", "int32")):
        converted = getattr(packed, name)()
        assert converted.data.dtype is getattr(torch, dtype)
        assert converted.data.tolist() == packed.data.tolist()
        assert torch.equal(converted.batch_sizes, packed.batch_sizes)


def test_packing_needs_elements_and_a_length_for_each_sequence():
    pack = rnn.pack_padded_sequence
    for batch, lengths, message in (
        (
            torch.ones(0, 1, 4),
            [1],
            "pack_padded_sequence: expected a batch with elements, got an empty tensor of shape "
            "(0, 1, 4)",
        ),
        (
            torch.ones(2, 3),
            [1, 1],
            "Expected `len(lengths)` to be equal to batch_size, but got 2 (batch_size=3)",
        ),
    ):
        with pytest.raises(RuntimeError) as error:
            pack(batch, lengths)
        assert str(error.value) == message
