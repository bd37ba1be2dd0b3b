"""Linear layers with weights of 8 and 4 bits, and the function that puts them into a model."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import io
import pickle
import warnings
from typing import Any, Callable

import pytest

import treadle
from treadle import Tensor, nn
from treadle.ao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_
from treadle.ao.quantization.weight_only import Int4WeightOnlyLinear, Int8WeightOnlyLinear
from treadle.testing import assert_close

CONFIGS = [Int8WeightOnlyConfig(), *(Int4WeightOnlyConfig(g) for g in (32, 64, 128, 256))]
DTYPES = [treadle.float32, treadle.bfloat16, treadle.float16]


def model(dtype: treadle.dtype = treadle.float32, device: str = "cpu") -> nn.Module:
    treadle.manual_seed(0)
    layers = nn.Sequential(
        nn.Linear(256, 50),
        nn.ReLU(),
        nn.Sequential(nn.Linear(50, 256), nn.Linear(256, 3, bias=False)),
    )
    return layers.to(dtype).to(device)


def quantize_what_fits(net: nn.Module, config: Any) -> None:
    quantize_(net, config, lambda m, _: isinstance(m, nn.Linear) and m.in_features == 256)


def weights(layer: Any) -> Tensor:
    """The weights of a layer, by its products with unit vectors."""
    bias = 0 if layer.bias is None else layer.bias.detach()
    return (layer(treadle.eye(layer.in_features)) - bias).t()


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("shape", [(256,), (3, 256), (2, 3, 256), (0, 256), (2, 0, 256)])
def test_a_quantized_model_is_near_the_model(config: Any, shape: Any) -> None:
    net, x = model(), treadle.randn(shape)
    wanted = net(x)
    quantize_what_fits(net, config)
    found = net(x)
    assert found.shape == wanted.shape
    assert_close(found, wanted, rtol=0, atol=0.15)


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_are_within_half_a_step(dtype: treadle.dtype) -> None:
    treadle.manual_seed(0)
    linear = nn.Linear(128, 20).to(dtype)
    wanted = linear.weight.detach().float()
    step = 0.5 if dtype == treadle.float32 else 0.55  # 16-bit scales and zeros are rounded
    found = weights(Int8WeightOnlyLinear(linear).float())
    assert ((found - wanted).abs() <= step * wanted.abs().amax(1, keepdim=True) / 127).all()
    found = weights(Int4WeightOnlyLinear(linear, 32).float())
    groups = wanted.reshape(20, 4, 32)
    steps = (groups.amax(2) - groups.amin(2)) / 15
    assert ((found - wanted).reshape(20, 4, 32).abs() <= step * steps[:, :, None] + 1e-6).all()


def test_numbers_that_are_exact() -> None:
    linear = nn.Linear(32, 3, bias=False)
    with treadle.no_grad():
        linear.weight.zero_()
        linear.weight[1] = 5.0
        linear.weight[2] = treadle.arange(32) % 16 - 3.0
    assert treadle.equal(weights(Int4WeightOnlyLinear(linear, 32)), linear.weight)
    with treadle.no_grad():
        linear.weight[2] = treadle.arange(32) * 8.0 - 127.0
    assert treadle.equal(weights(Int8WeightOnlyLinear(linear))[0], linear.weight[0])
    assert treadle.equal(weights(Int8WeightOnlyLinear(linear))[2], linear.weight[2])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("config", CONFIGS[:2])
def test_the_state_of_a_model_is_loaded_into_another(config: Any, dtype: treadle.dtype) -> None:
    net, x = model(dtype), treadle.randn(2, 256).to(dtype)
    quantize_what_fits(net, config)
    kept = io.BytesIO()
    treadle.save(net.state_dict(), kept)
    kept.seek(0)
    state = treadle.load(kept)
    other = model(dtype, "meta")
    quantize_what_fits(other, config)
    other.load_state_dict(state, assign=True)
    assert treadle.equal(other(x), net(x))
    for clone in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert treadle.equal(clone(x), net(x))
    wrong = model(dtype)
    quantize_what_fits(wrong, CONFIGS[-1])
    with pytest.raises(RuntimeError, match="state_dict"):
        wrong.load_state_dict(state)


@pytest.mark.parametrize("config", CONFIGS[:4])
@pytest.mark.parametrize(("features", "results"), [(0, 3), (128, 0)])
def test_layers_without_weights(config: Any, features: int, results: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.Sequential(nn.Linear(features, results))
    x = treadle.ones(2, features)
    wanted = model(x)
    quantize_(model, config)
    treadle.testing.assert_close(model(x), wanted)
    assert model(x[:0]).shape == (0, results) and model(x[0]).shape == (results,)


def test_a_whole_model_is_saved() -> None:
    model = nn.Sequential(nn.Linear(64, 3))
    quantize_(model, Int8WeightOnlyConfig())
    file = io.BytesIO()
    treadle.save(model, file)
    file.seek(0)
    x = treadle.randn(2, 64)
    assert treadle.equal(treadle.load(file, weights_only=False)(x), model(x))


def test_the_state_is_small() -> None:
    def size(config: Any) -> int:
        net = nn.Sequential(nn.Linear(1024, 1024, bias=False))
        if config is not None:
            quantize_(net, config)
        return sum(t.numel() * t.itemsize for t in net.bfloat16().state_dict().values())

    whole = size(None)
    assert size(Int8WeightOnlyConfig()) == whole // 2 + 2 * 1024
    assert size(Int4WeightOnlyConfig(128)) == whole // 4 + 4 * 1024 * 8


def test_a_model_changes_its_dtype_after_quantization() -> None:
    net, x = model(), treadle.randn(2, 256)
    quantize_what_fits(net, CONFIGS[2])
    wanted = net(x)
    net.bfloat16()
    assert_close(net(x.bfloat16()).float(), wanted, rtol=0, atol=0.03)
    with pytest.raises(RuntimeError) as info:
        net(x)
    assert str(info.value) == (
        "_weight_int4pack_mm_for_cpu: expected self and qScaleAndZeros of one dtype, got "
        "treadle.float32 and treadle.bfloat16"
    )


def test_which_layers_are_replaced() -> None:
    shared = nn.Linear(32, 32)
    net = nn.ModuleDict(
        {
            "one": shared,
            "two": nn.Sequential(shared, nn.Embedding(4, 32)),
            "attention": nn.MultiheadAttention(32, 4),
            "head": nn.Linear(32, 5),
        }
    )
    net.eval()
    quantize_(
        net, Int4WeightOnlyConfig(32), lambda m, name: type(m) is nn.Linear and name != "head"
    )
    assert net["one"] is net["two"][0] and isinstance(net["one"], Int4WeightOnlyLinear)
    assert type(net["head"]) is nn.Linear and not net["one"].training
    out_proj = net["attention"].out_proj
    assert isinstance(out_proj, nn.Linear)  # its attention reads the weight itself
    quantize_(net, Int8WeightOnlyConfig())
    assert isinstance(net["head"], Int8WeightOnlyLinear) and net["attention"].out_proj is out_proj
    assert isinstance(net["one"], Int4WeightOnlyLinear)


def test_layers_say_what_they_are() -> None:
    linear = nn.Linear(64, 5)
    assert repr(Int8WeightOnlyLinear(linear)) == (
        "Int8WeightOnlyLinear(in_features=64, out_features=5, bias=True)"
    )
    assert repr(Int4WeightOnlyLinear(linear, 32)) == (
        "Int4WeightOnlyLinear(in_features=64, out_features=5, bias=True, group_size=32)"
    )
    assert {
        k: tuple(v.shape) for k, v in Int4WeightOnlyLinear(linear, 32).state_dict().items()
    } == {
        "bias": (5,),
        "weight": (16, 32),
        "scales_and_zeros": (2, 16, 2),
    }


def test_a_bias_can_be_trained_and_nothing_before_the_layer() -> None:
    layer = Int8WeightOnlyLinear(nn.Linear(4, 3))
    layer(treadle.ones(2, 4)).sum().backward()
    assert layer.bias.grad.tolist() == [2, 2, 2]
    with pytest.raises(NotImplementedError) as info:
        layer(treadle.ones(2, 4, requires_grad=True)).sum().backward()
    assert str(info.value) == "_weight_int8pack_mm: derivative is not implemented"


def infinite() -> nn.Module:
    net = model()
    with treadle.no_grad():
        net[2][1].weight[1, 1] = float("inf")
    return net


INT4, INT8 = Int4WeightOnlyConfig(64), Int8WeightOnlyConfig()


@pytest.mark.parametrize(
    "call, error, said",
    [
        *(
            (
                lambda size=size: Int4WeightOnlyConfig(size),
                ValueError,
                "Int4WeightOnlyConfig: expected group_size to be one of (32, 64, 128, 256), got "
                f"{size!r}",
            )
            for size in (0, -32, 16, 100, 2**70, "64")
        ),
        (
            lambda: quantize_(model(), INT4),
            ValueError,
            "Int4WeightOnlyLinear: expected in_features in multiples of group_size = 64, got 50, "
            "in '2.0'; filter_fn can leave this layer out",
        ),
        (
            lambda: quantize_(infinite(), INT8),
            ValueError,
            "quantize_: expected finite weights, got infinities or NaN, in '2.1'; filter_fn can "
            "leave this layer out",
        ),
        (
            lambda: quantize_(model(treadle.float64), INT8),
            ValueError,
            "quantize_: expected weights of dtype float32, bfloat16 or float16, got float64, in "
            "'0'; filter_fn can leave this layer out",
        ),
        (
            lambda: quantize_(model(), "int8"),
            TypeError,
            "quantize_: expected config to be an Int8WeightOnlyConfig or an Int4WeightOnlyConfig, "
            "got str",
        ),
        (
            lambda: quantize_(model(), INT8, lambda m, _: True),
            TypeError,
            "quantize_: expected filter_fn to choose layers of class Linear inside of the model, "
            "got Sequential ''",
        ),
        (
            lambda: quantize_(nn.Linear(4, 3), INT8),
            TypeError,
            "quantize_: expected filter_fn to choose layers of class Linear inside of the model, "
            "got Linear ''",
        ),
        (
            lambda: Int8WeightOnlyLinear(nn.Linear(4, 3))(treadle.ones(2, 5)),
            RuntimeError,
            "Int8WeightOnlyLinear: expected input of shape (..., 4), got (2, 5)",
        ),
        (
            lambda: Int4WeightOnlyLinear(nn.Linear(32, 3), 32)(treadle.tensor(1.0)),
            RuntimeError,
            "Int4WeightOnlyLinear: expected input of shape (..., 32), got ()",
        ),
    ],
)
def test_what_does_not_fit(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error) as info:
        call()
    assert str(info.value) == said


def test_a_model_with_a_layer_that_does_not_fit_is_not_changed() -> None:
    net = model()
    with pytest.raises(ValueError, match="in_features"):
        quantize_(net, INT4)
    assert type(net[0]) is nn.Linear


def test_packed_weights_of_a_wrong_size_are_refused() -> None:
    layer = Int4WeightOnlyLinear(nn.Linear(64, 16), 32)
    layer.weight = layer.weight[:, :16]
    with pytest.raises(RuntimeError) as info:
        layer(treadle.ones(1, 64))
    assert str(info.value) == (
        "_weight_int4pack_mm_for_cpu: expected packed weights of shape (n, 32) with n in multiples "
        "of 16, got (16, 16)"
    )
