"""Modules that round tensors in training: switches, gradients, state."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import pickle

import pytest

import treadle
from treadle.ao import quantization as q


def test_rounds_to_the_numbers_of_the_scale_with_the_gradient_of_the_identity() -> None:
    fake = q.FakeQuantize(observer=q.MinMaxObserver, quant_min=0, quant_max=255)
    x = treadle.tensor([-1.0, 0.3, 1.55], requires_grad=True)
    y = fake(x)
    assert fake.scale.tolist() == pytest.approx([0.01])
    assert fake.zero_point.tolist() == [100] and fake.zero_point.dtype == treadle.int32
    assert y.tolist() == pytest.approx([-1.0, 0.3, 1.55])
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
    fake.disable_observer()
    x.grad = None
    fake(x * 2).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 0.0]  # the ends are as they were


def test_switches() -> None:
    for fake in (q.default_fake_quant(), q.default_fused_act_fake_quant()):
        x = treadle.tensor([-1.0, 0.123, 2.0])
        fake.apply(q.disable_fake_quant)
        assert fake(x) is x and fake.scale.item() != 1.0
        seen = fake.scale.item()
        fake.apply(q.disable_observer)
        fake.apply(q.enable_fake_quant)
        rounded = fake(x * 100)
        assert fake.scale.item() == seen and rounded.max().item() < 3
        fake.apply(q.enable_observer)
        fake(x * 100)
        assert fake.scale.item() > seen


def test_a_float_zero_point_is_rounded_with_the_number() -> None:
    x, scale, zero_point = treadle.tensor([[0.26]]), treadle.ones(1), treadle.tensor([0.3])
    rounded = treadle.fake_quantize_per_channel_affine(x, scale, zero_point, 0, 0, 15)
    assert rounded.tolist() == [[pytest.approx(0.7)]]


def test_fixed_ranges_stay() -> None:
    fake = q.default_fixed_qparams_range_0to1_fake_quant()
    fake(treadle.tensor([-5.0, 7.0]))
    assert fake.scale.item() == 1 / 256 and fake.calculate_qparams()[1].item() == 0


def test_state_comes_back() -> None:
    fake = q.default_per_channel_weight_fake_quant()
    fake(treadle.arange(12.0).reshape(3, 4))
    new = q.default_per_channel_weight_fake_quant()
    new.load_state_dict(fake.state_dict())
    assert treadle.equal(new.scale, fake.scale) and new.scale.shape == (3,)
    assert treadle.equal(new.activation_post_process.max_val, treadle.tensor([3.0, 7.0, 11.0]))
    for copied in (copy.deepcopy(fake), pickle.loads(pickle.dumps(fake))):
        assert repr(copied) == repr(fake)


def test_the_fused_function_by_rows() -> None:
    x = treadle.tensor([[-1.0, 2.0], [0.0, 4.0], [-8.0, 0.0]], requires_grad=True)
    on, scale, zero_point = (treadle.tensor([1]) for _ in range(3))
    scale = scale.float()
    low, high = treadle.tensor([]), treadle.tensor([])
    rounded = treadle.fused_moving_avg_obs_fake_quant(
        x, on, on, low, high, scale, zero_point, 0.5, 0, 255, 0, True, False
    )
    assert (low.tolist(), high.tolist()) == ([-1.0, 0.0, -8.0], [2.0, 4.0, 0.0])
    assert scale.tolist() == pytest.approx([3 / 255, 4 / 255, 8 / 255])
    assert zero_point.tolist() == [85, 0, 255] and rounded.shape == (3, 2)
    rounded.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0]] * 3


def test_a_tensor_without_channels() -> None:
    fake = q.default_fused_per_channel_wt_fake_quant()
    assert fake(treadle.empty(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_pass_through(wrong: float) -> None:
    fake = q.default_fused_act_fake_quant()
    assert not fake(treadle.tensor([1.0, wrong]))[1].isfinite().item()
    assert not fake.scale.isfinite().item() and fake.zero_point.item() == 0


REFUSED = {
    "range": (
        lambda: q.FakeQuantize(quant_min=-1, quant_max=254),
        "FakeQuantize: expected 0 <= quant_min <= quant_max <= 255 for treadle.quint8, got -1 and "
        "254",
    ),
    "range of an observer whose dtype is given first": (
        lambda: q.FakeQuantize(
            q.MinMaxObserver.with_args(dtype=treadle.qint8).with_args(eps=0.1), 0, 200
        ),
        "FakeQuantize: expected -128 <= quant_min <= quant_max <= 127 for treadle.qint8, got 0 and "
        "200",
    ),
    "not fixed": (
        lambda: q.FixedQParamsFakeQuantize(observer=q.MinMaxObserver),
        "FixedQParamsFakeQuantize: expected a FixedQParamsObserver, got MinMaxObserver",
    ),
    "no averages": (
        lambda: q.FusedMovingAvgObsFakeQuantize(observer=q.MinMaxObserver),
        "FusedMovingAvgObsFakeQuantize: expected an observer with moving averages, got "
        "MinMaxObserver",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_settings(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(AssertionError) as error:
        call()
    assert str(error.value) == message
