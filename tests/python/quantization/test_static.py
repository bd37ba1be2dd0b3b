"""prepare() and convert(): a model on quantized tensors, near the float one."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import pytest

import treadle
from treadle import nn
from treadle.ao import quantization as q
from treadle.ao.nn import intrinsic as nni
from treadle.ao.nn import quantized as nnq
from treadle.ao.nn.intrinsic import quantized as nniq


class Skip(nn.Module):
    """A small network with a branch, as the blocks of image models have."""

    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = q.QuantStub(), q.DeQuantStub()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.relu1 = nn.ReLU()
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, groups=2), nn.BatchNorm2d(8)
        self.skip = nnq.FloatFunctional()
        self.pool, self.flatten = nn.AdaptiveAvgPool2d(2), nn.Flatten()
        self.drop, self.fc = nn.Dropout(0.1), nn.Linear(32, 5)

    def forward(self, x: Any) -> Any:
        x = self.relu1(self.bn1(self.conv1(self.quant(x))))
        x = self.skip.add_relu(self.bn2(self.conv2(x)), x)
        return self.dequant(self.fc(self.drop(self.flatten(self.pool(x)))))


@pytest.fixture()
def samples() -> Any:
    treadle.manual_seed(3)
    return treadle.randn(32, 3, 6, 6)


def _prepared(samples: Any, backend: str = "x86") -> Any:
    treadle.manual_seed(4)
    model = Skip().eval()
    model = q.fuse_modules(model, [["conv1", "bn1", "relu1"], ["conv2", "bn2"]])
    model.qconfig = q.get_default_qconfig(backend)
    prepared = q.prepare(model)
    prepared(samples)
    return model, prepared


@pytest.mark.parametrize("backend", ["x86", "onednn", "qnnpack"])
def test_results_are_near_the_float_ones(backend: str, samples: Any) -> None:
    model, prepared = _prepared(samples, backend)
    assert treadle.equal(prepared(samples), model(samples))  # observers change nothing
    quantized = q.convert(prepared)
    kinds = {name: type(module) for name, module in quantized.named_children()}
    assert kinds["quant"] is nnq.Quantize and kinds["dequant"] is nnq.DeQuantize
    assert kinds["conv1"] is nniq.ConvReLU2d and kinds["conv2"] is nnq.Conv2d
    assert kinds["skip"] is nnq.QFunctional and kinds["fc"] is nnq.Linear
    assert kinds["drop"] is nnq.Dropout
    wanted = model(samples)
    got = quantized(samples)
    assert got.dtype == treadle.float32 and got.shape == wanted.shape
    error = (got - wanted).abs().max() / wanted.abs().max()
    assert error.item() < 0.05
    assert not any(hasattr(module, "qconfig") for module in quantized.modules())


def test_layers_have_a_scale_for_each_channel_where_the_backend_says_so(samples: Any) -> None:
    for backend, scheme in (
        ("x86", treadle.per_channel_affine),
        ("qnnpack", treadle.per_tensor_affine),
    ):
        quantized = q.convert(_prepared(samples, backend)[1])
        weight = quantized.fc.weight()
        assert weight.qscheme() == scheme and weight.dtype == treadle.qint8
        assert f"qscheme={scheme}" in repr(quantized.fc)


def test_in_place_and_by_one_call(samples: Any) -> None:
    treadle.manual_seed(4)
    model = Skip()
    model.qconfig = q.get_default_qconfig("qnnpack")
    quantized = q.quantize(model, lambda m, x: m(x), (samples,))
    assert type(quantized.conv1) is nnq.Conv2d and type(model.conv1) is nn.Conv2d
    assert type(quantized.bn1) is nnq.BatchNorm2d
    assert q.quantize(model, lambda m, x: m(x), (samples,), inplace=True) is model
    assert type(model.conv1) is nnq.Conv2d
    assert treadle.equal(model(samples), quantized(samples))


def test_state_copies_and_pickles(samples: Any) -> None:
    _, prepared = _prepared(samples)
    quantized = q.convert(prepared)
    wanted = quantized(samples)
    state = quantized.state_dict()
    assert list(state) == [
        "quant.scale",
        "quant.zero_point",
        "conv1.scale",
        "conv1.zero_point",
        "conv1.weight",
        "conv1.bias",
        "conv2.scale",
        "conv2.zero_point",
        "conv2.weight",
        "conv2.bias",
        "skip.scale",
        "skip.zero_point",
        "fc.scale",
        "fc.zero_point",
        "fc._packed_params.dtype",
        "fc._packed_params._packed_params",
    ]
    other = q.convert(_prepared(samples * 3)[1])
    assert not treadle.equal(other(samples), wanted)
    other.load_state_dict(state)
    for copied in (other, copy.deepcopy(quantized), pickle.loads(pickle.dumps(quantized))):
        assert treadle.equal(copied(samples), wanted)
        assert repr(copied) == repr(quantized)
    file = io.BytesIO()
    treadle.save(state, file)
    file.seek(0)
    third = q.convert(_prepared(samples * 2)[1])
    third.load_state_dict(treadle.load(file))
    assert treadle.equal(third(samples), wanted)


def test_files_of_whole_models(samples: Any) -> None:
    recurrent = q.quantize_dynamic(nn.Sequential(nn.LSTM(3, 4), nn.Identity()))
    for model, x in (
        (q.convert(_prepared(samples)[1]), samples),
        (recurrent[0], treadle.randn(2, 1, 3)),
    ):
        file = io.BytesIO()
        treadle.save(model, file)
        file.seek(0)
        loaded = treadle.load(file, weights_only=False)
        got, wanted = loaded(x), model(x)
        if isinstance(got, tuple):
            got, wanted = got[0], wanted[0]
        assert treadle.equal(got, wanted) and repr(loaded) == repr(model)


def test_a_state_that_does_not_fit_is_refused(samples: Any) -> None:
    quantized = q.convert(_prepared(samples)[1])
    wanted = quantized(samples)
    state = quantized.state_dict()
    del state["conv1.weight"]
    state["fc.scale"] = "large"
    state["conv2.weight"] = treadle.zeros(2)
    state["conv2.bias"] = treadle.zeros(9)
    state["fc._packed_params._packed_params"] = (treadle.zeros(3, 3), None)
    with pytest.raises(RuntimeError) as error:
        quantized.load_state_dict(state)
    text = str(error.value)
    assert 'Missing key(s) in state_dict: "conv1.weight"' in text
    assert "fc.scale: could not convert string to float: 'large'" in text
    assert "conv2.weight: expected a tensor of shape (8, 4, 3, 3), got (2,)" in text
    assert "conv2.bias: expected a tensor of shape (8,), got (9,)" in text
    assert "expected a weight of shape (5, 32) and a bias, got (3, 3)" in text
    assert quantized(samples).shape == wanted.shape
    state = quantized.state_dict()
    state["conv2.weight"] = state["conv2.weight"].dequantize()
    weight, _ = state["fc._packed_params._packed_params"]
    state["fc._packed_params._packed_params"] = (weight, treadle.zeros(6))
    with pytest.raises(RuntimeError) as error:
        quantized.load_state_dict(state)
    text = str(error.value)
    assert "conv2.weight: expected a tensor of treadle.qint8, got treadle.float32" in text
    assert "_packed_params: expected a tensor of shape (5,), got (6,)" in text


def test_a_wrapped_layer() -> None:
    layer = nn.Linear(4, 4).eval()
    layer.qconfig = q.default_qconfig
    wrapped = q.add_quant_dequant(layer)
    assert type(wrapped) is q.QuantWrapper
    inside = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    inside[0].qconfig = q.default_qconfig
    assert type(q.add_quant_dequant(inside)[0]) is q.QuantWrapper and type(inside[1]) is nn.ReLU
    x = treadle.randn(16, 4)
    quantized = q.quantize(inside, lambda m: m(x), ())
    treadle.testing.assert_close(quantized(x), inside(x), atol=0.1, rtol=0.1)


def test_layers_of_a_known_range() -> None:
    layers = (nn.Sigmoid(), nn.Hardsigmoid(), nn.Tanh(), nn.Softmax(dim=1))
    x = treadle.randn(8, 4)
    for layer in layers:
        model = nn.Sequential(q.QuantStub(), nn.Linear(4, 4), layer, q.DeQuantStub(), layer).eval()
        quantized = q.convert(_calibrated(model, x))
        assert isinstance(quantized[2], type(layer)) and quantized[2](x).dtype == treadle.float32
        middle = quantized[2](quantized[1](quantized[0](x)))
        expected = (2 / 256, 128) if isinstance(layer, nn.Tanh) else (1 / 256, 0)
        assert (middle.q_scale(), middle.q_zero_point()) == expected
        treadle.testing.assert_close(quantized(x), model(x), atol=0.05, rtol=0.05)


def _calibrated(model: Any, x: Any) -> Any:
    model.qconfig = q.get_default_qconfig()
    prepared = q.prepare(model)
    prepared(x)
    return prepared


def test_hooks_go_along() -> None:
    model = nn.Sequential(q.QuantStub(), nn.Linear(2, 2)).eval()
    seen = []
    model[1].register_forward_pre_hook(lambda *_: seen.append("before"))
    model[1].register_forward_hook(lambda *_: seen.append("after"))
    model.qconfig = q.default_qconfig
    prepared = q.prepare(model)
    prepared(treadle.ones(1, 2))
    quantized = q.convert(prepared)
    seen.clear()
    quantized(treadle.ones(1, 2))
    assert seen == ["before", "after"]
    assert len(quantized[1]._forward_hooks) == 1


def test_hooks_with_keywords_go_along() -> None:
    model = nn.Sequential(q.QuantStub(), nn.Linear(2, 2), nn.ReLU()).eval()
    seen = []
    model[1].register_forward_pre_hook(lambda m, a, k: seen.append(k), with_kwargs=True)
    model[2].register_forward_hook(lambda m, a, k, r: seen.append(k), with_kwargs=True)
    quantized = q.convert(_calibrated(q.fuse_modules(model, ["1", "2"]), treadle.ones(1, 2)))
    assert type(quantized[1]) is nniq.LinearReLU
    seen.clear()
    quantized(treadle.ones(1, 2))
    assert seen == [{}, {}]


def test_a_module_in_several_places() -> None:
    layer = nn.Linear(2, 2)
    model = nn.Sequential(q.QuantStub(), layer, layer, nn.Sequential(layer), q.DeQuantStub()).eval()
    x = treadle.randn(8, 2)
    prepared = _calibrated(model, x)
    assert len(prepared[1]._forward_hooks) == 1
    quantized = q.convert(prepared)
    assert quantized[1] is quantized[2] is quantized[3][0] and type(quantized[1]) is nnq.Linear
    treadle.testing.assert_close(quantized(x), model(x), atol=0.1, rtol=0.1)
    dynamic = q.quantize_dynamic(nn.Sequential(layer, nn.ReLU(), layer))
    assert dynamic[0] is dynamic[2] and type(dynamic[0]) is not nn.Linear


def test_normalisations_do_not_train() -> None:
    treadle.manual_seed(5)
    model = nn.Sequential(q.QuantStub(), nn.BatchNorm2d(3), q.DeQuantStub())
    x = treadle.randn(8, 3, 4, 4) * 2 + 1
    model(x)
    prepared = _calibrated(model.eval(), x)
    quantized = q.convert(prepared.train())
    mean = quantized[1].running_mean.clone()
    wanted = prepared.eval()(x)
    for mode in (False, True):
        treadle.testing.assert_close(quantized.train(mode)(x), wanted, atol=0.1, rtol=0.1)
    assert treadle.equal(quantized[1].running_mean, mean)


def test_layers_without_a_kernel_take_the_arguments_of_pytorch() -> None:
    x = treadle.quantize_per_tensor(treadle.randn(2, 4, 4, 4), 0.05, 64, treadle.quint8)
    real, ones, zeros = x.dequantize(), treadle.ones(4), treadle.zeros(4)
    parameters = (nn.Parameter(ones * 2), nn.Parameter(ones))
    for layer, wanted in (
        (nnq.ELU(0.02, 60, 0.5), nn.functional.elu(real, 0.5)),
        (nnq.Hardswish(0.02, 60), nn.functional.hardswish(real)),
        (nnq.LeakyReLU(0.02, 60, 0.5), nn.functional.leaky_relu(real, 0.5)),
        (nnq.Sigmoid(1 / 256, 0), real.sigmoid()),
        (nnq.Sigmoid(output_scale=1 / 256, output_zero_point=0), real.sigmoid()),
        (nnq.PReLU(0.02, 60, 4), nn.functional.prelu(real, ones / 4)),
        (nnq.Softmax(1, 1 / 256, 0), real.softmax(1)),
        (
            nnq.LayerNorm([4], *parameters, 0.05, 64),
            nn.functional.layer_norm(real, [4], *parameters),
        ),
        (
            nnq.GroupNorm(2, 4, *parameters, 0.05, 64),
            nn.functional.group_norm(real, 2, *parameters),
        ),
        (
            nnq.InstanceNorm2d(4, *parameters, 0.05, 64),
            nn.functional.instance_norm(real, None, None, *parameters),
        ),
    ):
        got = layer(x)
        top = (255 - layer.zero_point) * layer.scale
        bottom = -layer.zero_point * layer.scale
        wanted = wanted.detach().clamp(bottom, top)
        assert (got.q_scale(), got.q_zero_point()) == (layer.scale, layer.zero_point)
        assert (got.dequantize() - wanted).abs().max().item() <= layer.scale * 0.51, layer
    norm = nnq.BatchNorm2d(4, 1e-3)
    assert norm.eps == 1e-3 and not norm.training and zeros.equal(norm.running_mean)
    with pytest.raises(TypeError) as error:
        nnq.Hardswish(0.1, 5, True)
    assert str(error.value) == (
        "Hardswish: expected at most 2 arguments (scale, zero_point), got 3"
    )


def test_classes_of_programs() -> None:
    class Mine(nn.Module):
        def forward(self, x: Any) -> Any:
            return x

    class Observed(nn.Module):
        @classmethod
        def from_float(cls, mod: Any) -> Any:
            made = cls()
            made.qconfig = mod.qconfig
            return made

        def forward(self, x: Any) -> Any:
            return x * 1

    class Quantized(nn.Module):
        @classmethod
        def from_observed(cls, mod: Any) -> Any:
            assert mod.activation_post_process.max_val.item() == 5.0
            return cls()

        def forward(self, x: Any) -> Any:
            return x + 1

    model = nn.Sequential(Mine()).eval()
    model.qconfig = q.default_qconfig
    prepared = q.prepare(
        model,
        prepare_custom_config_dict={"float_to_observed_custom_module_class": {Mine: Observed}},
    )
    prepared(treadle.tensor([5.0]))
    made = q.convert(
        prepared,
        convert_custom_config_dict={
            "observed_to_quantized_custom_module_class": {Observed: Quantized}
        },
    )
    assert made(treadle.tensor([5.0])).tolist() == [6.0]


def test_nothing_to_quantize_is_a_warning() -> None:
    with pytest.warns(UserWarning) as caught:
        q.prepare(nn.Sequential(nn.Linear(1, 1)))
    assert str(caught[0].message) == (
        "prepare: no module has a QConfig; set the attribute qconfig of the model or of a module "
        "in it"
    )


def _with_qconfig(layer: Any, qconfig: Any = q.default_qconfig) -> Any:
    layer.qconfig = qconfig
    return layer


REFUSED = {
    "not prepared": (
        lambda: nnq.Linear.from_float(_with_qconfig(nn.Linear(1, 1))),
        "Linear: expected an observer in activation_post_process, got NoneType; call prepare() "
        "first",
    ),
    "another class": (
        lambda: nnq.Linear.from_float(nn.ReLU()),
        "nn.quantized.Linear.from_float: expected a module of class Linear, "
        "NonDynamicallyQuantizableLinear, Linear, LinearBn1d, got one of ReLU",
    ),
    "qconfig of None": (
        lambda: nnq.Conv2d.from_float(_with_qconfig(nn.Conv2d(1, 1, 1), None)),
        "nn.quantized.Conv2d.from_float: expected a module with the attribute qconfig, got none",
    ),
    "no qconfig": (
        lambda: nnq.Conv2d.from_float(nn.Conv2d(1, 1, 1)),
        "nn.quantized.Conv2d.from_float: expected a module with the attribute qconfig, got none",
    ),
    "functional": (
        lambda: nnq.QFunctional.from_float(nn.ReLU()),
        "nn.quantized.QFunctional.from_float: expected a module of class FloatFunctional, got one "
        "of ReLU",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(AssertionError) as error:
        call()
    assert str(error.value) == message


def test_other_refused_calls() -> None:
    with pytest.raises(NotImplementedError) as error:
        q.convert(nn.ReLU(), is_reference=True)
    assert str(error.value) == "convert: expected is_reference=False, got True"
    with pytest.raises(ValueError) as wrong:
        nnq.Conv2d(1, 1, 1, padding_mode="reflect")
    assert str(wrong.value) == "Conv2d: expected padding_mode='zeros', got 'reflect'"
    with pytest.raises(ValueError) as padding:
        nnq.Conv2d(1, 1, 1, padding="same")
    assert str(padding.value) == "Conv2d: expected padding as numbers, got 'same'"
    for groups in (0, 2):
        with pytest.raises(ValueError) as channels:
            nnq.Conv1d(3, 4, 1, groups=groups)
        assert str(channels.value) == (
            f"Conv1d: expected channels in multiples of groups > 0, got 3, 4 and groups={groups}"
        )
    by_channel = q.QConfig(q.PerChannelMinMaxObserver, q.default_weight_observer)
    prepared = q.prepare(nn.Sequential(_with_qconfig(nn.Linear(1, 2), by_channel)).eval())
    prepared(treadle.ones(3, 1))
    with pytest.raises(AssertionError) as scales:
        q.convert(prepared)
    assert str(scales.value) == (
        "PerChannelMinMaxObserver: expected one scale for activations, got 3"
    )
    wide = q.QConfig(q.default_observer, q.MinMaxObserver)
    model = nn.Sequential(_with_qconfig(nn.Linear(1, 1), wide)).eval()
    prepared = q.prepare(model)
    prepared(treadle.ones(1, 1))
    with pytest.raises(AssertionError) as dtype:
        q.convert(prepared)
    assert str(dtype.value) == "Linear: expected weights of treadle.qint8, got treadle.quint8"
    with pytest.raises(AssertionError) as dtype:
        nnq.Linear(1, 1, dtype=treadle.float16)
    assert str(dtype.value) == (
        "QuantizedLinear: expected weights of treadle.qint8, got treadle.float16"
    )
    model = nn.Sequential(_with_qconfig(nn.Linear(1, 1), q.QConfig(None, q.MinMaxObserver))).eval()
    with pytest.raises(TypeError) as none:
        q.prepare(model)
    assert str(none.value) == (
        "prepare: expected a factory of observers as activation in the QConfig of Linear, got None"
    )
    for made in (nnq.QFunctional(), nnq.FXFloatFunctional(), nnq.FloatFunctional()):
        with pytest.raises(RuntimeError) as called:
            made(treadle.ones(1))
        assert str(called.value) == (
            f"{type(made).__name__}: expected a call of one of its methods, as add(x, y), got a "
            "call of the module"
        )


def test_samples_that_are_no_numbers() -> None:
    model = nn.Sequential(q.QuantStub(), nn.Linear(2, 2), q.DeQuantStub()).eval()
    model.qconfig = q.default_qconfig
    prepared = q.prepare(model)
    prepared(treadle.tensor([[float("nan"), 1.0]]))
    quantized = q.convert(prepared)
    with pytest.raises(RuntimeError) as error:
        quantized(treadle.ones(1, 2))
    assert str(error.value) == "quantize_per_tensor: expected positive scales, got nan"
    prepared = q.prepare(model)
    with pytest.warns(UserWarning, match="^must run observer before calling calculate_qparams"):
        unseen = q.convert(prepared)
    assert unseen[0].scale.item() == 1.0 and unseen(treadle.ones(1, 2)).shape == (1, 2)


def test_new_layers_have_zeros() -> None:
    x = treadle.quantize_per_tensor(treadle.ones(2, 3), 0.1, 0, treadle.quint8)
    assert nnq.Linear(3, 4)(x).dequantize().tolist() == [[0.0] * 4] * 2
    image = treadle.quantize_per_tensor(treadle.ones(1, 2, 3, 3), 0.1, 0, treadle.quint8)
    assert nnq.Conv2d(2, 4, 2)(image).shape == (1, 4, 2, 2)
    assert nni.LinearReLU is not nniq.LinearReLU
