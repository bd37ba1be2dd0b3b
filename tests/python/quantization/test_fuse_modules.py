"""Layers in a row become one that computes the same."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Tuple

import pytest

import treadle
from treadle import nn
from treadle.ao import quantization as q
from treadle.ao.nn import intrinsic as nni


def _moved(model: nn.Module) -> nn.Module:
    """The model, with normalisations that change something."""
    for module in model.modules():
        if hasattr(module, "running_mean"):
            module.running_mean.uniform_(-1, 1)
            module.running_var.uniform_(0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 2)
            nn.init.uniform_(module.bias, -1, 1)
    return model


ROWS: Any = {
    "conv1d bn": ((nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3)), nn.Conv1d, (4, 2, 5)),
    "conv1d bn relu": (
        (nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), nn.ReLU()),
        nni.ConvReLU1d,
        (4, 2, 5),
    ),
    "conv2d bn": ((nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3)), nn.Conv2d, (4, 2, 5, 5)),
    "conv2d bn relu": (
        (nn.Conv2d(2, 3, 2, bias=False), nn.BatchNorm2d(3), nn.ReLU()),
        nni.ConvReLU2d,
        (4, 2, 5, 5),
    ),
    "conv3d bn relu": (
        (nn.Conv3d(2, 3, 2), nn.BatchNorm3d(3), nn.ReLU()),
        nni.ConvReLU3d,
        (4, 2, 3, 3, 3),
    ),
    "conv2d relu": ((nn.Conv2d(2, 3, 2), nn.ReLU()), nni.ConvReLU2d, (4, 2, 5, 5)),
    "linear relu": ((nn.Linear(2, 3), nn.ReLU()), nni.LinearReLU, (4, 2)),
    "linear bn": ((nn.Linear(2, 3), nn.BatchNorm1d(3)), nn.Linear, (4, 2)),
    "bn relu": ((nn.BatchNorm2d(2), nn.ReLU()), nni.BNReLU2d, (4, 2, 5, 5)),
    "transposed bn": (
        (nn.ConvTranspose2d(2, 3, 2), nn.BatchNorm2d(3)),
        nn.ConvTranspose2d,
        (4, 2, 5, 5),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_computes_the_same(name: str) -> None:
    layers, kind, shape = ROWS[name]
    treadle.manual_seed(1)
    model = _moved(nn.Sequential(*layers)).eval()
    fused = q.fuse_modules(model, [str(i) for i in range(len(layers))])
    assert type(fused[0]) is kind and all(type(layer) is nn.Identity for layer in fused[1:])
    assert type(model[0]) is type(layers[0])  # a copy was fused
    x = treadle.randn(shape)
    treadle.testing.assert_close(fused(x), model(x), rtol=1e-4, atol=1e-5)


def test_several_rows_by_path_in_place_with_hooks() -> None:
    inner = nn.Sequential(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.ReLU())
    model = nn.Sequential(inner, nn.Flatten(), nn.Linear(8, 2), nn.ReLU()).eval()
    seen = []
    inner[0].register_forward_pre_hook(lambda *_: seen.append("before"))
    inner[2].register_forward_hook(lambda *_: seen.append("after"))
    result = q.fuse_modules(model, [["0.0", "0.1", "0.2"], ["2", "3"]], inplace=True)
    assert result is model and type(model[2]) is nni.LinearReLU
    model(treadle.ones(1, 2, 2, 2))
    assert seen == ["before", "after"]


def test_for_training_the_normalisation_stays() -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.ReLU()).train()
    fused = q.fuse_modules_qat(model, ["0", "1", "2"])
    assert type(fused[0]) is nni.ConvBnReLU2d
    assert [type(part) for part in fused[0]] == [nn.Conv2d, nn.BatchNorm2d, nn.ReLU]
    linear = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).train()
    assert type(q.fuse_modules_qat(linear, ["0", "1"])[0]) is nni.LinearBn1d


def test_own_ways_to_fuse() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh()).eval()
    mapping = {(nn.Linear, nn.Tanh): lambda is_qat, a, b: nn.Sequential(a, b)}
    config = {"additional_fuser_method_mapping": mapping}
    fused = q.fuse_modules(model, ["0", "1"], fuse_custom_config_dict=config)
    assert type(fused[0]) is nn.Sequential and type(fused[1]) is nn.Identity


def _pair(*layers: nn.Module) -> Tuple[nn.Module, Any]:
    return nn.Sequential(*layers), [str(i) for i in range(len(layers))]


REFUSED = {
    "no such row": (
        lambda: q.fuse_modules(*_pair(nn.ReLU(), nn.Linear(1, 1))),
        AssertionError,
        "fuse_modules: layers of these classes cannot be one: ReLU, Linear",
    ),
    "nothing": (
        lambda: q.fuse_modules(nn.Sequential(), [[]]),
        ValueError,
        "fuse_modules: expected names of modules, got an empty list",
    ),
    "modes": (
        lambda: q.fuse_modules(*_pair(nn.Conv2d(1, 1, 1).eval(), nn.BatchNorm2d(1))),
        AssertionError,
        "fuse_conv_bn: expected all layers in one mode, got evaluation, training",
    ),
    "training": (
        lambda: q.fuse_modules(*_pair(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1))),
        AssertionError,
        "fuse_conv_bn_eval: expected modules in evaluation mode; call eval() first",
    ),
    "no statistics": (
        lambda: q.fuse_modules(
            *_pair(nn.Conv2d(1, 1, 1).eval(), nn.BatchNorm2d(1, track_running_stats=False).eval())
        ),
        AssertionError,
        "fuse_conv_bn_eval: expected a normalisation with track_running_stats=True, got "
        "BatchNorm2d(1, eps=1e-05, momentum=0.1, affine=True, track_running_stats=False)",
    ),
    "features": (
        lambda: q.fuse_modules_qat(*_pair(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(3))),
        AssertionError,
        "fuse_conv_bn: expected a normalisation of 2 features with affine=True and "
        "track_running_stats=True, got BatchNorm2d(3, eps=1e-05, momentum=0.1, affine=True, "
        "track_running_stats=True)",
    ),
    "transposed in training": (
        lambda: q.fuse_modules_qat(*_pair(nn.ConvTranspose2d(1, 1, 1), nn.BatchNorm2d(1))),
        NotImplementedError,
        "fuse_convtranspose_bn: a transposed convolution is not fused for training",
    ),
    "parts": (
        lambda: nni.ConvReLU2d(nn.Linear(1, 1), nn.ReLU()),
        AssertionError,
        "ConvReLU2d: expected Conv2d, ReLU, got Linear, ReLU",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(AttributeError):
        q.fuse_modules(nn.Sequential(nn.Linear(1, 1)), ["0", "7"])
