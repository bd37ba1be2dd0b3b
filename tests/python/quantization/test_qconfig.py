"""QConfigs, and which part of a model gets which."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pytest

import treadle
from treadle import nn
from treadle.ao import quantization as q


@pytest.mark.parametrize(
    ("backend", "highest", "weight"),
    [
        ("x86", 127, q.PerChannelMinMaxObserver),
        ("fbgemm", 127, q.PerChannelMinMaxObserver),
        ("onednn", 255, q.PerChannelMinMaxObserver),
        ("qnnpack", 255, q.MinMaxObserver),
    ],
)
def test_backends(backend: str, highest: int, weight: type) -> None:
    qconfig = q.get_default_qconfig(backend)
    activation = qconfig.activation()
    assert isinstance(activation, q.HistogramObserver) and activation.quant_max == highest
    made = qconfig.weight()
    assert type(made) is weight and made.dtype == treadle.qint8
    for version, kind in enumerate((q.FakeQuantize, q.FusedMovingAvgObsFakeQuantize)):
        trained = q.get_default_qat_qconfig(backend, version)
        assert type(trained.activation()) is kind and type(trained.weight()) is kind
        assert trained.activation().activation_post_process.quant_max == highest
        assert trained.weight().is_per_channel == (weight is q.PerChannelMinMaxObserver)


def test_equality() -> None:
    one = q.QConfig(q.MinMaxObserver.with_args(quant_min=0, quant_max=9), q.MinMaxObserver)
    same = q.QConfig(q.MinMaxObserver.with_args(quant_min=0, quant_max=9), q.MinMaxObserver)
    other = q.QConfig(q.MinMaxObserver.with_args(quant_min=0, quant_max=8), q.MinMaxObserver)
    assert q.qconfig_equals(one, same) and not q.qconfig_equals(one, other)
    assert q.qconfig_equals(None, None) and not q.qconfig_equals(one, None)
    fakes = [q.get_default_qat_qconfig("x86") for _ in range(2)]
    assert q.qconfig_equals(*fakes)
    assert not q.qconfig_equals(fakes[0], q.get_default_qat_qconfig("qnnpack"))


def test_older_form() -> None:
    with pytest.warns(FutureWarning) as caught:
        older = q.QConfigDynamic(weight=q.default_weight_observer)
    assert str(caught[0].message) == "QConfigDynamic: use QConfig"
    assert older.activation is nn.Identity
    with pytest.warns(FutureWarning):
        assert q.get_default_qconfig_dict()["object_type"]


def test_mappings_as_dictionaries_and_text() -> None:
    mapping = (
        q.QConfigMapping()
        .set_global(q.default_qconfig)
        .set_object_type(nn.Linear, None)
        .set_module_name_regex("a.*", q.default_dynamic_qconfig)
        .set_module_name("b", None)
        .set_module_name_object_type_order("c", nn.Linear, 1, None)
    )
    kept = mapping.to_dict()
    assert kept[""] is q.default_qconfig and kept["object_type"] == [(nn.Linear, None)]
    assert kept["module_name_object_type_order"] == [("c", nn.Linear, 1, None)]
    assert q.QConfigMapping.from_dict(kept).to_dict() == kept
    assert repr(q.QConfigMapping()).startswith("QConfigMapping (\n global_qconfig\n  None\n")


def test_propagation() -> None:
    inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    model = nn.Sequential(inner, nn.Linear(2, 2), nn.LSTM(2, 2))
    own, by_name, by_class, linear = (
        q.QConfig(q.MinMaxObserver.with_args(quant_min=0, quant_max=end), q.MinMaxObserver)
        for end in (3, 4, 5, 6)
    )
    model[1].qconfig = own
    q.propagate_qconfig_(model, {"0": by_name, nn.LSTM: by_class, nn.Linear: linear})
    found = {name: module.qconfig for name, module in model.named_modules()}
    assert found == {
        "": None,
        "0": by_name,
        "0.0": linear,
        "0.1": by_name,
        "1": own,
        "2": by_class,
    }


def test_modules_that_get_no_qconfig() -> None:
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Linear(2, 2), nn.Tanh())
    model.qconfig = q.default_qconfig
    custom = {"non_traceable_module_class": [nn.Linear], "non_traceable_module_name": ["0.1", "2"]}
    q.propagate_qconfig_(model, prepare_custom_config_dict=custom)
    with_one = [name for name, module in model.named_modules() if hasattr(module, "qconfig")]
    assert with_one == ["", "0"]


REFUSED = {
    "an instance": (
        lambda: q.QConfig(q.MinMaxObserver(), q.MinMaxObserver),
        ValueError,
        "QConfig: expected classes, or what with_args() of them gives, got an instance of "
        "MinMaxObserver",
    ),
    "no qconfig": (
        lambda: q.propagate_qconfig_(nn.ReLU(), {nn.ReLU: "fbgemm"}),
        TypeError,
        "ReLU: expected qconfig to be a QConfig or None, got 'fbgemm'",
    ),
    "backend": (
        lambda: q.get_default_qconfig("tpu"),
        AssertionError,
        "get_default_qconfig: expected backend in ['fbgemm', 'onednn', 'qnnpack', 'x86'], got "
        "'tpu'",
    ),
    "version": (
        lambda: q.get_default_qat_qconfig("x86", 7),
        AssertionError,
        "get_default_qat_qconfig: expected version in [0, 1], got 7",
    ),
    "transposed": (
        lambda: q.propagate_qconfig_(nn.ConvTranspose2d(1, 1, 1), {"": q.get_default_qconfig()}),
        AssertionError,
        "ConvTranspose2d: expected a weight observer per tensor, got PerChannelMinMaxObserver",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message
