"""Training with rounding, and what convert() makes of it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any

import pytest

import treadle
from treadle import nn
from treadle.ao import quantization as q
from treadle.ao.nn import intrinsic as nni
from treadle.ao.nn import qat
from treadle.ao.nn import quantized as nnq
from treadle.ao.nn.intrinsic import qat as nniqat
from treadle.ao.nn.intrinsic import quantized as nniq


def _network() -> Any:
    treadle.manual_seed(0)
    return nn.Sequential(
        q.QuantStub(),
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 4, 1),
        nn.Flatten(),
        nn.Linear(64, 10),
        nn.ReLU(),
        nn.Linear(10, 2),
        q.DeQuantStub(),
    )


def _prepared(backend: str = "x86") -> Any:
    model = q.fuse_modules_qat(_network().train(), [["1", "2", "3"], ["6", "7"]])
    model.qconfig = q.get_default_qat_qconfig(backend)
    return q.prepare_qat(model)


@pytest.mark.parametrize("backend", ["x86", "qnnpack"])
def test_a_network_trains_and_converts(backend: str) -> None:
    prepared = _prepared(backend)
    kinds = [type(layer) for layer in prepared]
    assert kinds[1] is nniqat.ConvBnReLU2d and kinds[4] is qat.Conv2d
    assert kinds[6] is nniqat.LinearReLU and kinds[8] is qat.Linear
    x, target = treadle.randn(32, 3, 6, 6), treadle.randn(32, 2)
    optimizer = treadle.optim.SGD(prepared.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        loss = nn.functional.mse_loss(prepared(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
    prepared.eval()
    prepared.apply(q.disable_observer)
    wanted = prepared(x)
    quantized = q.convert(prepared)
    kinds = [type(layer) for layer in quantized]
    assert kinds[1] is nniq.ConvReLU2d and kinds[4] is nnq.Conv2d
    assert kinds[6] is nniq.LinearReLU and kinds[8] is nnq.Linear
    got = quantized(x)
    assert ((got - wanted).abs().max() / wanted.abs().max()).item() < 0.1


def test_rounding_is_of_the_weight_that_convert_makes() -> None:
    """With rounding switched off a fused layer computes what its layers compute."""
    treadle.manual_seed(1)
    for conv, bn, x in (
        (nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), treadle.randn(4, 2, 5)),
        (nn.Conv2d(2, 3, 2, bias=False), nn.BatchNorm2d(3), treadle.randn(4, 2, 5, 5)),
        (nn.Conv3d(2, 3, 2), nn.BatchNorm3d(3), treadle.randn(4, 2, 3, 3, 3)),
        (nn.Linear(2, 3), nn.BatchNorm1d(3), treadle.randn(4, 2)),
    ):
        plain = nn.Sequential(conv, bn).train()
        model = q.fuse_modules_qat(plain, ["0", "1"])
        model.qconfig = q.default_qat_qconfig
        fused = q.prepare_qat(model)[0]
        fused.apply(q.disable_fake_quant)
        treadle.testing.assert_close(fused(x), plain(x), rtol=1e-4, atol=1e-5)
        treadle.testing.assert_close(fused.bn.running_mean, bn.running_mean)
        fused.eval()
        plain.eval()
        treadle.testing.assert_close(fused(x), plain(x), rtol=1e-4, atol=1e-5)
        treadle.testing.assert_close(fused.to_float()(x), plain(x), rtol=1e-4, atol=1e-5)


def test_normalisations_may_begin_with_a_weight_of_zero() -> None:
    plain = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3)).train()
    nn.init.zeros_(plain[1].weight)
    model = q.fuse_modules_qat(plain, ["0", "1"])
    model.qconfig = q.get_default_qat_qconfig()
    prepared = q.prepare_qat(model)
    result = prepared(treadle.randn(4, 2, 5, 5))
    assert result.abs().max().item() == 0
    result.sum().backward()
    assert prepared[0].bn.weight.grad.isfinite().all().item()


def test_statistics_can_be_frozen() -> None:
    prepared = _prepared()
    x = treadle.randn(4, 3, 6, 6)
    prepared(x)
    prepared.apply(nniqat.freeze_bn_stats)
    before = prepared[1].bn.running_mean.clone()
    prepared.train()(x)
    assert treadle.equal(prepared[1].bn.running_mean, before)
    prepared.apply(nniqat.update_bn_stats)
    prepared(x)
    assert not treadle.equal(prepared[1].bn.running_mean, before)
    prepared[1].reset_running_stats()
    assert prepared[1].bn.running_mean.abs().max().item() == 0


def test_parameters_stay_those_of_the_float_layer() -> None:
    layer = nn.Linear(2, 3)
    layer.qconfig = q.default_qat_qconfig
    made = qat.Linear.from_float(layer)
    assert made.weight is layer.weight and made.bias is layer.bias
    assert [name for name, _ in made.named_parameters()] == ["weight", "bias"]
    float_again = made.to_float()
    assert type(float_again) is nn.Linear and float_again.weight is layer.weight
    assert not hasattr(float_again, "weight_fake_quant")
    relu = nni.LinearReLU(nn.Linear(2, 3), nn.ReLU())
    relu.qconfig = q.default_qat_qconfig
    assert type(nniqat.LinearReLU.from_float(relu).to_float()) is nni.LinearReLU


def test_state_comes_back() -> None:
    one, other = _prepared(), _prepared()
    x = treadle.randn(4, 3, 6, 6)
    for _ in range(3):
        one(x)
    assert "1.bn.running_mean" in one.state_dict()
    other.load_state_dict(one.state_dict())
    copied = copy.deepcopy(one)
    for model in (one, other, copied):
        model.eval().apply(q.disable_observer)
    assert treadle.equal(other(x), one(x)) and treadle.equal(copied(x), one(x))


def test_layers_by_themselves() -> None:
    qconfig = q.get_default_qat_qconfig()
    assert qat.Conv2d(2, 3, 1, qconfig=qconfig)(treadle.randn(1, 2, 4, 4)).shape == (1, 3, 4, 4)
    fused = nniqat.ConvBnReLU2d(2, 3, 1, freeze_bn=True, qconfig=qconfig)
    assert fused(treadle.randn(2, 2, 4, 4)).min().item() >= 0 and not fused.bn.training
    bag = qat.EmbeddingBag(5, 2, qconfig=q.default_embedding_qat_qconfig)
    assert bag(treadle.tensor([[1, 2]])).shape == (1, 2)


REFUSED = {
    "evaluation": (
        lambda: q.prepare_qat(nn.Linear(1, 1).eval()),
        "prepare_qat: expected a model in training mode; call train() first",
    ),
    "no qconfig": (lambda: qat.Linear(1, 1), "Linear: expected a QConfig, got None"),
    "class": (
        lambda: qat.Linear.from_float(nn.ReLU()),
        "qat.Linear.from_float: expected a module of class Linear, "
        "NonDynamicallyQuantizableLinear, got one of ReLU",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(AssertionError) as error:
        call()
    assert str(error.value) == message


def test_in_one_call() -> None:
    model = _network()
    model.qconfig = q.get_default_qat_qconfig()
    x = treadle.randn(4, 3, 6, 6)
    quantized = q.quantize_qat(model, lambda m: m(x), ())
    assert type(quantized[8]) is nnq.Linear and quantized(x).shape == (4, 2)
    assert type(model[8]) is nn.Linear
