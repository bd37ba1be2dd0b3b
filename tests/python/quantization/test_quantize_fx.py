"""Quantization by graphs."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import pickle
from typing import Any, Callable, List

import pytest

import treadle
from treadle import nn
from treadle.ao import quantization as q
from treadle.ao.nn import intrinsic as nni
from treadle.ao.nn import quantized as nnq
from treadle.ao.nn.intrinsic import qat as nniqat
from treadle.ao.nn.intrinsic import quantized as nniq
from treadle.ao.nn.quantized import dynamic as nnqd
from treadle.ao.quantization import quantize_fx as fx
from treadle.ao.quantization.fx.custom_config import PrepareCustomConfig
from treadle.nn import functional as F  # noqa: N812


class Network(nn.Module):
    """One call of most of the patterns."""

    def __init__(self) -> None:
        super().__init__()
        treadle.manual_seed(0)
        self.conv, self.bn = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.relu = nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()
        self.pool, self.drop = nn.MaxPool2d(2), nn.Dropout(0.1)
        self.skip = nnq.FloatFunctional()
        self.weight = nn.Parameter(treadle.randn(6, 8) / 3)
        self.bias = nn.Parameter(treadle.ones(6))
        self.head = nn.Linear(6, 4)

    def forward(self, x: Any) -> Any:
        y = treadle.relu(self.bn(self.conv(x)))
        z = self.skip.add_relu(self.conv2(y), y)
        z = treadle.cat([self.pool(z), self.pool(y)], 1)[:, :8]
        z = self.drop(z).mean((2, 3)) * 2.0
        z = F.hardswish(F.relu(F.linear(z, self.weight, self.bias)))
        return self.head(z).view(x.shape[0], -1)


@pytest.fixture()
def x() -> Any:
    treadle.manual_seed(1)
    return treadle.randn(16, 3, 6, 6)


def _converted(model: Any, x: Any, mapping: Any = None, **settings: Any) -> Any:
    mapping = q.get_default_qconfig_mapping() if mapping is None else mapping
    prepared = fx.prepare_fx(model.eval(), mapping, (x,), **settings)
    prepared(x)
    return fx.convert_fx(prepared)


def _called(model: Any) -> List[Any]:
    """The modules and functions that a graph calls, in its order."""
    found = []
    for node in model.graph.nodes:
        if node.op == "call_module":
            found.append(type(model.get_submodule(node.target)).__name__)
        elif node.op in ("call_function", "call_method"):
            found.append(node.target if isinstance(node.target, str) else node.target.__name__)
    return found


def test_a_network(x: Any) -> None:
    model = Network().eval()
    prepared = fx.prepare_fx(model, q.get_default_qconfig_mapping(), (x,))
    treadle.testing.assert_close(prepared(x), model(x), rtol=1e-4, atol=1e-5)
    quantized = fx.convert_fx(prepared)
    assert _called(quantized) == [
        "Quantize",
        "ConvReLU2d",
        "Conv2d",
        "QuantizedAdd",
        "MaxPool2d",
        "MaxPool2d",
        "QuantizedCat",
        "getitem",
        "Dropout",
        "mean",
        "dequantize",
        "mul",
        "Quantize",
        "Linear",
        "dequantize",
        "hardswish",
        "Quantize",
        "Linear",
        "getattr",
        "getitem",
        "view",
        "dequantize",
    ]
    wanted, got = model(x), quantized(x)
    assert got.shape == wanted.shape and got.dtype == treadle.float32
    assert ((got - wanted).abs().max() / wanted.abs().max()).item() < 0.05
    assert isinstance(model.skip, nnq.FloatFunctional)  # the model is as it was


def test_copies_pickles_and_states(x: Any) -> None:
    quantized = _converted(Network(), x)
    wanted = quantized(x)
    for copied in (copy.deepcopy(quantized), pickle.loads(pickle.dumps(quantized))):
        assert treadle.equal(copied(x), wanted)
    other = _converted(Network(), x * 3)
    assert not treadle.equal(other(x), wanted)
    other.load_state_dict(quantized.state_dict())
    assert treadle.equal(other(x), wanted)
    prepared = fx.prepare_fx(Network().eval(), q.get_default_qconfig_mapping(), (x,))
    prepared(x)
    for copied in (copy.deepcopy(prepared), pickle.loads(pickle.dumps(prepared))):
        assert treadle.equal(fx.convert_fx(copied)(x), wanted)


def test_training(x: Any) -> None:
    model = Network().train()
    prepared = fx.prepare_qat_fx(model, q.get_default_qat_qconfig_mapping(), (x,))
    assert type(prepared.conv) is nniqat.ConvBnReLU2d
    optimizer = treadle.optim.SGD(prepared.parameters(), lr=0.01)
    losses = []
    for _ in range(10):
        loss = prepared(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    prepared.eval().apply(q.disable_observer)
    wanted = prepared(x)
    quantized = fx.convert_fx(prepared)
    assert type(quantized.conv) is nniq.ConvReLU2d
    got = quantized(x)
    assert ((got - wanted).abs().max() / wanted.abs().max()).item() < 0.1


def test_dynamic(x: Any) -> None:
    mapping = q.QConfigMapping().set_global(q.default_dynamic_qconfig)
    model = Network().eval()
    quantized = fx.convert_fx(fx.prepare_fx(model, mapping, (x,)))
    assert type(quantized.head) is nnqd.Linear and type(quantized.linear) is nnqd.Linear
    assert type(quantized.conv) is nni.ConvReLU2d and type(quantized.conv2) is nn.Conv2d
    wanted, got = model(x), quantized(x)
    assert ((got - wanted).abs().max() / wanted.abs().max()).item() < 0.05


def test_tables_of_embeddings() -> None:
    model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2)).eval()
    mapping = q.get_default_qconfig_mapping().set_object_type(
        nn.Embedding, q.float_qparams_weight_only_qconfig
    )
    rows = treadle.tensor([1, 4])
    quantized = _converted(model, rows, mapping)
    assert _called(quantized) == ["Embedding", "Quantize", "Linear", "dequantize"]
    assert type(quantized.get_submodule("0")) is nnq.Embedding
    treadle.testing.assert_close(quantized(rows), model(rows), atol=0.05, rtol=0.1)


def test_what_stays_float(x: Any) -> None:
    mapping = q.get_default_qconfig_mapping()
    for change, names in (
        (lambda m: m.set_module_name("conv", None), ["conv"]),
        (lambda m: m.set_object_type(nn.Linear, None), ["head"]),
        (lambda m: m.set_module_name_regex("conv.*", None), ["conv", "conv2"]),
        (lambda m: m.set_module_name_object_type_order("", nn.Linear, 0, None), ["head"]),
    ):
        quantized = _converted(Network(), x, change(copy.deepcopy(mapping)))
        layers = {name: getattr(quantized, name) for name in ("conv", "conv2", "head")}
        for name, layer in layers.items():
            is_float = isinstance(layer, (nn.Conv2d, nn.Linear, nni.ConvReLU2d))
            assert is_float == (name in names), name
        treadle.testing.assert_close(quantized(x), Network().eval()(x), atol=0.3, rtol=0.1)
    untouched = _converted(Network(), x, q.QConfigMapping())
    assert "Quantize" not in _called(untouched)
    treadle.testing.assert_close(untouched(x), Network().eval()(x), atol=1e-4, rtol=1e-4)


def test_a_name_counts_for_what_is_in_the_module() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2)), nn.Linear(2, 2))
    mapping = q.get_default_qconfig_mapping().set_module_name("0", None)
    quantized = _converted(model, treadle.randn(4, 2), mapping)
    assert _called(quantized) == ["Linear", "Quantize", "Linear", "dequantize"]
    assert type(quantized.get_submodule("0.0")) is nn.Linear


def test_a_layer_that_is_called_twice() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            return self.layer(self.layer(x) * 100.0)

    treadle.manual_seed(2)
    model, x = Twice(), treadle.randn(20, 3)
    quantized = _converted(model, x)
    assert quantized.layer.scale * 20 < quantized.layer_1.scale
    wanted = model(x)
    assert ((quantized(x) - wanted).abs().max() / wanted.abs().max()).item() < 0.05


class _Calling(nn.Module):
    """A model that calls a function with itself and its argument."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


def _linear() -> Any:
    return nn.Linear(3, 3)


# Models in which a quantized call has the name of something that stays float, by what stays float.
SAME_NAMES: Any = {
    "a second call and a layer": (
        lambda: _Calling(
            lambda m, x: m.layer_1(m.layer(m.layer(x))), layer=_linear(), layer_1=_linear()
        ),
        lambda mapping: mapping.set_module_name("layer_1", None),
    ),
    "a function and a layer": (
        lambda: _Calling(
            lambda m, x: m.linear(F.linear(x, m.weight)),
            weight=nn.Parameter(treadle.randn(3, 3)),
            linear=_linear(),
        ),
        lambda mapping: mapping.set_module_name("linear", None),
    ),
    "an operator and layers": (
        lambda: _Calling(lambda m, x: m.add(x + x), add=nn.Sequential(_linear())),
        lambda mapping: mapping.set_object_type(nn.Linear, None),
    ),
    "an operator and a parameter": (
        lambda: _Calling(lambda m, x: (x + x) - m.add, add=nn.Parameter(treadle.randn(3))),
        lambda mapping: mapping,
    ),
    "the first call of a layer": (
        lambda: _Calling(lambda m, x: m.layer(m.layer(x)), layer=_linear()),
        lambda mapping: mapping.set_module_name_object_type_order("", nn.Linear, 0, None),
    ),
    "the second call of a layer": (
        lambda: _Calling(lambda m, x: m.layer(m.layer(x)), layer=_linear()),
        lambda mapping: mapping.set_module_name_object_type_order("", nn.Linear, 1, None),
    ),
}


@pytest.mark.parametrize("name", SAME_NAMES)
def test_quantized_calls_do_not_replace_what_stays_float(name: str) -> None:
    make, change = SAME_NAMES[name]
    treadle.manual_seed(2)
    model, x = make(), treadle.randn(20, 3)
    quantized = _converted(model, x, change(q.get_default_qconfig_mapping()))
    wanted = model(x)
    assert ((quantized(x) - wanted).abs().max() / wanted.abs().max()).item() < 0.05
    assert any("Quantize" in kind for kind in _called(quantized))


def test_a_weight_of_a_function_needs_no_samples() -> None:
    model = _Calling(lambda m, x: F.linear(x, m.weight), weight=nn.Parameter(treadle.randn(3, 3)))
    x = treadle.randn(4, 3)
    mapping = q.get_default_qconfig_mapping()
    with pytest.warns(UserWarning, match="^must run observer before calling calculate_qparams"):
        unseen = fx.convert_fx(fx.prepare_fx(model.eval(), mapping, (x,)))
    unseen.load_state_dict(_converted(model, x).state_dict())
    treadle.testing.assert_close(unseen(x), model(x), atol=0.1, rtol=0.1)


def _relu_of(m: Any, x: Any) -> Any:
    y = x + x
    y.relu_()
    return y * x


def _clamp_of(m: Any, x: Any) -> Any:
    y = m.layer(x)
    y.clamp_(0, 1)
    return y + x


def _sum_of(m: Any, x: Any) -> Any:
    y = F.gelu(x)
    y.add_(x)
    return m.layer(y)


def _relu_function_of(m: Any, x: Any) -> Any:
    y = m.layer(x)
    F.relu(y, inplace=True)
    return y + x


def _relu_module_of(m: Any, x: Any) -> Any:
    y = m.layer(x)
    return y + m.relu(y)


@pytest.mark.parametrize(
    "function", [_relu_of, _clamp_of, _sum_of, _relu_function_of, _relu_module_of]
)
def test_calls_that_write_their_argument(function: Callable[..., Any]) -> None:
    treadle.manual_seed(6)
    model = _Calling(function, layer=_linear(), relu=nn.ReLU(inplace=True))
    x = treadle.randn(20, 3)
    quantized = _converted(model, x)
    wanted = model(x)
    assert ((quantized(x) - wanted).abs().max() / wanted.abs().max()).item() < 0.05


def test_tensors_that_are_joined_but_not_listed_stay_float() -> None:
    model, x = _Calling(lambda m, x: treadle.cat(x.chunk(3, 1), 1)), treadle.randn(4, 3)
    quantized = _converted(model, x)
    assert _called(quantized) == ["chunk", "cat"] and treadle.equal(quantized(x), x)


def test_a_class_counts_for_the_functions_that_its_modules_call() -> None:
    class Inner(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + x

    mapping = q.get_default_qconfig_mapping().set_object_type(Inner, None)
    quantized = _converted(nn.Sequential(nn.Linear(2, 2), Inner()), treadle.randn(4, 2), mapping)
    assert _called(quantized) == ["Quantize", "Linear", "dequantize", "add"]


FUNCTIONS: List[Callable[..., Any]] = [
    lambda a, b: a + b,
    lambda a, b: treadle.add(a, b).relu(),
    lambda a, b: a.mul(b),
    lambda a, b: F.relu(a * b),
    lambda a, b: treadle.cat((a, b), dim=1),
    lambda a, b: F.avg_pool2d(a + b, 2),
    lambda a, b: F.adaptive_avg_pool2d(a + b, 1).flatten(1),
    lambda a, b: F.max_pool2d(a + b, 2).permute(0, 2, 3, 1),
    lambda a, b: F.interpolate(a + b, scale_factor=2).clamp(-1, 1),
    lambda a, b: F.hardtanh(a + b).reshape(-1),
    lambda a, b: F.relu6(a + b).transpose(1, 2),
    lambda a, b: (a + b).mean([2, 3]).unsqueeze(0).squeeze(0),
    lambda a, b: treadle.sigmoid(a + b) + treadle.tanh(b),
    lambda a, b: F.gelu(a + b) - b,
    lambda a, b: a.size(0) + (a + b),
    lambda a, b: F.interpolate(a + b, scale_factor=2, mode="bicubic"),
    lambda a, b: F.interpolate(a + b, scale_factor=2, mode="nearest-exact"),
    lambda a, b: F.max_pool2d(a + b, 2, return_indices=True)[0],
    lambda a, b: (a + b).clamp(min=b.mean(1, keepdim=True)),
    lambda a, b: (a + b).clamp_(-1, 1),
]


@pytest.mark.parametrize("place", range(len(FUNCTIONS)))
def test_functions(place: int) -> None:
    class Model(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return FUNCTIONS[place](a, b)

    treadle.manual_seed(3)
    a, b = treadle.randn(2, 4, 6, 6), treadle.randn(2, 4, 6, 6)
    prepared = fx.prepare_fx(Model().eval(), q.get_default_qconfig_mapping(), (a, b))
    prepared(a, b)
    quantized = fx.convert_fx(prepared)
    assert any(name.startswith("Quantize") for name in _called(quantized))
    wanted, got = Model()(a, b), quantized(a, b)
    assert got.shape == wanted.shape and got.dtype == treadle.float32
    # A mean has the scale of what it is the mean of, which is large for it.
    assert ((got - wanted).abs().max() / wanted.abs().max()).item() < 0.1


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_convolutions_as_functions(dims: int) -> None:
    convolve = getattr(F, f"conv{dims}d")

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(treadle.randn(6, 2, *(3,) * dims))
            self.bias = nn.Parameter(treadle.randn(6))

        def forward(self, x: Any) -> Any:
            return F.relu(convolve(x, self.weight, self.bias, stride=2, padding=1, groups=2))

    treadle.manual_seed(4)
    model, x = Model(), treadle.randn(3, 4, *(6,) * dims)
    quantized = _converted(model, x)
    assert _called(quantized) == ["Quantize", f"Conv{dims}d", "dequantize"]
    wanted = model(x)
    assert ((quantized(x) - wanted).abs().max() / wanted.abs().max()).item() < 0.05


def test_settings(x: Any) -> None:
    class Untraceable(nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    model = nn.Sequential(nn.Conv2d(3, 4, 1), Untraceable(), nn.Conv2d(4, 2, 1))
    model.label = "kept"
    custom = (
        PrepareCustomConfig()
        .set_non_traceable_module_classes([Untraceable])
        .set_preserved_attributes(["label"])
        .set_output_quantized_indexes([0])
    )
    assert PrepareCustomConfig.from_dict(custom.to_dict()).to_dict() == custom.to_dict()
    prepared = fx.prepare_fx(model.eval(), q.get_default_qconfig_mapping(), (x,), custom)
    prepared(x)
    assert prepared.label == "kept"
    quantized = fx.convert_fx(prepared, {"preserved_attributes": ["label"]})
    assert quantized.label == "kept" and quantized(x).is_quantized
    assert _called(quantized) == [
        "Quantize", "Conv2d", "dequantize", "Untraceable", "Quantize", "Conv2d",
    ]  # fmt: skip
    given = PrepareCustomConfig().set_input_quantized_indexes([0])
    prepared = fx.prepare_fx(nn.Sequential(nn.Conv2d(3, 4, 1)).eval(),
                             q.get_default_qconfig_mapping(), (x,), given)  # fmt: skip
    prepared(x)
    taking = fx.convert_fx(prepared)
    assert _called(taking) == ["Conv2d", "dequantize"]
    quantized_x = treadle.quantize_per_tensor(x, 0.05, 64, treadle.quint8)
    assert taking(quantized_x).dtype == treadle.float32


def test_fused_graphs(x: Any) -> None:
    model = Network().eval()
    fused = fx.fuse_fx(model)
    assert type(fused.conv) is nni.ConvReLU2d
    treadle.testing.assert_close(fused(x), model(x), rtol=1e-4, atol=1e-5)


def _with_a_float_result() -> Any:
    custom = PrepareCustomConfig().set_output_quantized_indexes([0])
    model = _Calling(lambda m, x: F.gelu(m.layer(x)), layer=_linear())
    return _converted(model, treadle.randn(4, 3), prepare_custom_config=custom)


REFUSED = {
    "mapping": (
        lambda x: fx.prepare_fx(Network().eval(), q.default_qconfig, (x,)),
        TypeError,
        "prepare_fx: expected a QConfigMapping or a dictionary, got QConfig",
    ),
    "settings of conversion": (
        lambda x: fx.convert_fx(fx.prepare_fx(Network().eval(), {}, (x,)), ["label"]),
        TypeError,
        "convert_fx: expected a ConvertCustomConfig or a dictionary, got list",
    ),
    "keys of a mapping": (
        lambda x: fx.prepare_fx(Network().eval(), {"module_names": []}, (x,)),
        ValueError,
        "QConfigMapping: expected keys in ['', 'object_type', 'module_name_regex', 'module_name', "
        "'module_name_object_type_order'], got 'module_names'",
    ),
    "a float result": (
        lambda x: _with_a_float_result(),
        ValueError,
        "convert_fx: expected quantized calls for the results in output_quantized_idxs, got gelu, "
        "which computes on floats",
    ),
    "training": (
        lambda x: fx.prepare_fx(Network(), q.get_default_qconfig_mapping(), (x,)),
        AssertionError,
        "prepare_fx: expected a model in evaluation mode; call eval() first",
    ),
    "evaluation": (
        lambda x: fx.prepare_qat_fx(Network().eval(), q.get_default_qconfig_mapping(), (x,)),
        AssertionError,
        "prepare_qat_fx: expected a model in training mode; call train() first",
    ),
    "fuse": (
        lambda x: fx.fuse_fx(Network()),
        AssertionError,
        "fuse_fx: expected a model in evaluation mode; call eval() first",
    ),
    "inputs": (
        lambda x: fx.prepare_fx(Network().eval(), q.get_default_qconfig_mapping(), x),
        TypeError,
        "prepare_fx: expected example_inputs to be a tuple of the model's arguments, got Tensor",
    ),
    "backend": (
        lambda x: fx.prepare_fx(Network().eval(), {}, (x,), backend_config="fast"),
        NotImplementedError,
        "prepare_fx: expected backend_config=None, got one of str",
    ),
    "not prepared": (
        lambda x: fx.convert_fx(Network()),
        ValueError,
        "convert_fx: expected a model that prepare_fx() or prepare_qat_fx() gave, got Network",
    ),
    "settings": (
        lambda x: fx.prepare_fx(Network().eval(), {}, (x,), {"standalone": 1}),
        ValueError,
        "PrepareCustomConfig: expected keys in ['input_quantized_idxs', "
        "'non_traceable_module_class', 'non_traceable_module_name', 'output_quantized_idxs', "
        "'preserved_attributes'], got 'standalone'",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, x: Any) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind) as error:
        call(x)
    assert str(error.value) == message
