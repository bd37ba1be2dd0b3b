"""A quantized ResNet-18 reads digits as well as the float one: within half a point.

It has the blocks of ResNet-18 and a quarter of its channels, since a full one trains for minutes.
The first convolution is 3 x 3 with stride 1, and no pooling follows it, as is usual for images of
32 x 32.

    ./dev python -m pytest -s tests/python/quantization/test_accuracy_of_resnet.py

prints the accuracies.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any, List

import pytest

import treadle
from handwritten_digits import Digits, handwritten_digits, points, train
from treadle import nn
from treadle.ao import quantization as q
from treadle.ao.nn.quantized import FloatFunctional
from treadle.ao.quantization import quantize_fx as fx

pytestmark = pytest.mark.slow

CHANNELS = 16


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(outputs), nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2, self.sum = nn.BatchNorm2d(outputs), FloatFunctional()
        self.shortcut = nn.Sequential()
        if stride != 1:
            self.shortcut.append(nn.Conv2d(inputs, outputs, 1, stride, bias=False))
            self.shortcut.append(nn.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.sum.add_relu(y, self.shortcut(x))


def _resnet() -> Any:
    treadle.manual_seed(0)
    widths = [CHANNELS << stage for stage in range(4)]
    blocks = [Block(CHANNELS, CHANNELS, 1), Block(CHANNELS, CHANNELS, 1)]
    for inputs, outputs in zip(widths, widths[1:]):
        blocks += [Block(inputs, outputs, 2), Block(outputs, outputs, 1)]
    stem = (nn.Conv2d(1, CHANNELS, 3, padding=1, bias=False), nn.BatchNorm2d(CHANNELS), nn.ReLU())
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10))
    return nn.Sequential(q.QuantStub(), *stem, *blocks, *head, q.DeQuantStub())


def _rows(model: Any) -> List[List[str]]:
    """The names of layers that become one."""
    rows = [["1", "2", "3"]]
    for name, block in model.named_children():
        if isinstance(block, Block):
            rows.append([f"{name}.{part}" for part in ("conv1", "bn1", "relu")])
            rows.append([f"{name}.{part}" for part in ("conv2", "bn2")])
            if len(block.shortcut):
                rows.append([f"{name}.shortcut.0", f"{name}.shortcut.1"])
    return rows


@pytest.fixture(scope="module")
def digits() -> Digits:
    return handwritten_digits(side=32)


@pytest.fixture(scope="module")
def trained(digits: Digits) -> Any:
    model = train(_resnet(), digits, rounds=3, rate=2e-3, batch=50)
    return train(model, digits, rounds=1, rate=2e-4, batch=50).eval()


def _calibrate(prepared: Any, digits: Digits) -> Any:
    with treadle.no_grad():
        prepared(digits[0][:200])
    return prepared


def _static(backend: str) -> Any:
    def quantized(model: Any, digits: Digits) -> Any:
        model = q.fuse_modules(model, _rows(model))
        model.qconfig = q.get_default_qconfig(backend)
        return q.convert(_calibrate(q.prepare(model), digits))

    return quantized


def _by_graph(model: Any, digits: Digits) -> Any:
    mapping = q.get_default_qconfig_mapping()
    return fx.convert_fx(_calibrate(fx.prepare_fx(model, mapping, (digits[0],)), digits))


def _dynamic(model: Any, digits: Digits) -> Any:
    return q.quantize_dynamic(model)


def _by_training(model: Any, digits: Digits) -> Any:
    model = q.fuse_modules_qat(copy.deepcopy(model).train(), _rows(model))
    model.qconfig = q.get_default_qat_qconfig()
    return q.convert(train(q.prepare_qat(model), digits, rounds=1, rate=1e-4).eval())


WAYS = {
    "static, x86": _static("x86"),
    "static, onednn": _static("onednn"),
    "static, qnnpack": _static("qnnpack"),
    "static, by graph": _by_graph,
    "dynamic": _dynamic,
    "training": _by_training,
}


def test_the_float_network(trained: Any, digits: Digits) -> None:
    accuracy = points(trained, digits)
    print(f"float: {accuracy:.1f} %")
    assert len([m for m in trained.modules() if isinstance(m, nn.Conv2d)]) == 20
    assert accuracy >= 95


@pytest.mark.parametrize("way", WAYS)
def test_a_quantized_network(way: str, trained: Any, digits: Digits) -> None:
    accuracy = points(WAYS[way](trained, digits), digits)
    print(f"{way}: {accuracy:.1f} %")
    assert accuracy >= points(trained, digits) - 0.5
