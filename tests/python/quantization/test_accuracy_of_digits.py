"""Digits are recognised as well by quantized networks as by the float ones: within half a point."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any

import pytest

import treadle
from handwritten_digits import Digits, handwritten_digits, points, train
from treadle import nn
from treadle.ao import quantization as q
from treadle.ao.quantization import quantize_fx as fx


@pytest.fixture(scope="module")
def digits() -> Digits:
    return handwritten_digits()


def _network() -> Any:
    treadle.manual_seed(0)
    return nn.Sequential(
        q.QuantStub(),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
        q.DeQuantStub(),
    )


ROWS = [["1", "2", "3"], ["5", "6", "7"], ["9", "10"]]


@pytest.fixture(scope="module")
def trained(digits: Any) -> Any:
    model = train(_network(), digits, rounds=4, rate=3e-3).eval()
    assert points(model, digits) > 90
    return model


def _check(quantized: Any, trained: Any, digits: Any) -> None:
    assert points(quantized, digits) >= points(trained, digits) - 0.5


def test_dynamic(trained: Any, digits: Any) -> None:
    for settings in ({}, {"dtype": treadle.float16}):
        _check(q.quantize_dynamic(trained, **settings), trained, digits)
    by_channel = q.quantize_dynamic(trained, {nn.Linear: q.per_channel_dynamic_qconfig})
    _check(by_channel, trained, digits)


@pytest.mark.parametrize("backend", ["x86", "onednn", "qnnpack"])
def test_static(backend: str, trained: Any, digits: Any) -> None:
    model = q.fuse_modules(trained, ROWS)
    model.qconfig = q.get_default_qconfig(backend)
    prepared = q.prepare(model)
    prepared(digits[0][:300])
    _check(q.convert(prepared), trained, digits)


def test_graphs(trained: Any, digits: Any) -> None:
    x = digits[0][:300]
    prepared = fx.prepare_fx(trained, q.get_default_qconfig_mapping(), (x,))
    prepared(x)
    quantized = fx.convert_fx(prepared)
    assert [type(m).__name__ for m in quantized.children()].count("ConvReLU2d") == 2
    _check(quantized, trained, digits)


@pytest.mark.parametrize("by_graph", [False, True])
def test_training(by_graph: bool, trained: Any, digits: Any) -> None:
    start = copy.deepcopy(trained).train()
    if by_graph:
        mapping = q.get_default_qat_qconfig_mapping()
        prepared = fx.prepare_qat_fx(start, mapping, (digits[0],))
    else:
        model = q.fuse_modules_qat(start, ROWS)
        model.qconfig = q.get_default_qat_qconfig()
        prepared = q.prepare_qat(model)
    train(prepared, digits, rounds=1, rate=3e-4).eval()
    _check(fx.convert_fx(prepared) if by_graph else q.convert(prepared), trained, digits)
