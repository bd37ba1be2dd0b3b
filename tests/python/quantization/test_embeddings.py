"""Tables of embeddings in eight bits."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import treadle
from treadle import nn
from treadle.ao import quantization as q
from treadle.ao.nn import qat
from treadle.ao.nn import quantized as nnq


def _made(layer: Any) -> Any:
    return q.quantize_dynamic(nn.ModuleList([layer]), dtype=treadle.quint8)[0]


def test_rows() -> None:
    treadle.manual_seed(0)
    layer = nn.Embedding(50, 8)
    made = _made(layer)
    numbers, scales, zero_points = made.weight()
    assert type(made) is nnq.Embedding and numbers.dtype == treadle.uint8
    assert scales.shape == zero_points.shape == (50,) and made.dtype == treadle.quint8
    assert repr(made) == (
        "QuantizedEmbedding(num_embeddings=50, embedding_dim=8, dtype=treadle.quint8, "
        "qscheme=treadle.per_channel_affine_float_qparams)"
    )
    for indices in (treadle.randint(0, 50, (3, 4)), treadle.tensor(7), treadle.zeros(0).long()):
        got, wanted = made(indices), layer(indices)
        # Each row has 256 numbers between its ends.
        assert got.shape == wanted.shape and got.dtype == treadle.float32
        treadle.testing.assert_close(got, wanted, atol=0.02, rtol=0)
    for copied in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), _made(layer)):
        copied.load_state_dict(made.state_dict())
        rows = treadle.arange(50)
        assert treadle.equal(copied(rows), made(rows))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 3, -1])
def test_bags(mode: str, padding: Any) -> None:
    treadle.manual_seed(1)
    layer = nn.EmbeddingBag(20, 8, mode=mode, padding_idx=padding)
    made = _made(layer)
    bags = treadle.tensor([[3, 1, 2], [19, 3, 4]])
    treadle.testing.assert_close(made(bags), layer(bags), atol=0.05, rtol=0)
    flat, offsets = treadle.tensor([1, 3, 3, 19, 6, 19]), treadle.tensor([0, 2, 2])
    treadle.testing.assert_close(made(flat, offsets), layer(flat, offsets), atol=0.08, rtol=0)
    if mode == "sum":
        weights = treadle.tensor([1.0, -1.0, 2.0, 0.5, 0.0, 3.0])
        treadle.testing.assert_close(
            made(flat, offsets, weights), layer(flat, offsets, weights), atol=0.1, rtol=0
        )
    with_last = _made(nn.EmbeddingBag(20, 8, mode=mode, include_last_offset=True))
    assert with_last(flat, treadle.tensor([0, 2, 6])).shape == (2, 8)


def test_trained_with_rounding() -> None:
    treadle.manual_seed(2)
    model = nn.Sequential(nn.Embedding(10, 4)).train()
    model.qconfig = q.default_embedding_qat_qconfig
    prepared = q.prepare_qat(model, q.get_embedding_qat_module_mappings())
    assert type(prepared[0]) is qat.Embedding
    rows = treadle.arange(10)
    prepared(rows).square().sum().backward()
    assert prepared[0].weight.grad.abs().max().item() > 0
    made = q.convert(prepared.eval(), q.get_embedding_static_quant_module_mappings())
    assert type(made[0]) is nnq.Embedding
    treadle.testing.assert_close(made(rows), prepared(rows), atol=1e-5, rtol=1e-5)


def test_refused() -> None:
    layer = nn.Embedding(3, 2)
    layer.qconfig = q.default_qconfig
    with pytest.raises(AssertionError) as dtype:
        nnq.Embedding.from_float(layer)
    assert str(dtype.value) == "Embedding: expected weights of treadle.quint8, got treadle.qint8"
    layer.qconfig = q.default_quint8_weight_qconfig
    with pytest.raises(AssertionError) as scheme:
        nnq.Embedding.from_float(layer)
    assert str(scheme.value) == (
        "nn.quantized.Embedding.from_float: expected weights of "
        "treadle.per_channel_affine_float_qparams (see float_qparams_weight_only_qconfig), got "
        "treadle.per_tensor_affine"
    )
    with pytest.raises(AssertionError) as shape:
        nnq.Embedding(3, 2, _weight=_made(nn.Embedding(3, 4)).weight())
    assert str(shape.value) == "Embedding: expected a weight of shape (3, 2), got (3, 4)"
    with pytest.raises(NotImplementedError) as norm:
        nnq.Embedding(3, 2, max_norm=1.0)
    assert str(norm.value) == (
        "Embedding: expected max_norm=None, as a table in eight bits is not scaled, got 1.0"
    )
    for layer, shape in ((nn.Embedding(3, 2), (1,)), (nn.EmbeddingBag(3, 2), (1, 1))):
        for index in (3, -1):
            with pytest.raises(IndexError):
                _made(layer)(treadle.full(shape, index))
        with pytest.raises(RuntimeError, match="expected index of dtype int64 or int32"):
            _made(layer)(treadle.full(shape, True))
