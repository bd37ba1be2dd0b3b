"""Activation layers against NumPy in float64."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import math
from typing import Any, Callable

import numpy as np
import pytest
from nn_arrays import array, check, normal, sigmoid, softmax, to_numpy

import treadle
import treadle.nn.functional as F
from treadle import nn, tensor


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(
    "layer, expected",
    [
        (nn.ReLU(), lambda x: np.maximum(x, 0)),
        (nn.LeakyReLU(0.2), lambda x: np.where(x > 0, x, 0.2 * x)),
        (nn.GELU(), gelu),
        (nn.GELU("tanh"), gelu_tanh),
        (nn.SiLU(), lambda x: x * sigmoid(x)),
        (nn.Sigmoid(), sigmoid),
        (nn.Tanh(), np.tanh),
        (nn.Softmax(1), lambda x: softmax(x, 1)),
        (nn.Softmin(1), lambda x: softmax(-x, 1)),
        (nn.LogSoftmax(0), lambda x: np.log(softmax(x, 0))),
        (nn.Identity(3, any="thing"), lambda x: x),
    ],
    ids=lambda v: repr(v) if isinstance(v, nn.Module) else "",
)
def test_plain_activations(layer, expected):
    x = array(4, 5) * 3
    check(layer(tensor(x)), expected(x))


ACTIVATIONS: list[tuple[nn.Module, Callable[[Any], Any], str]] = [
    (
        nn.Threshold(0.1, 20.0),
        lambda x: np.where(x > 0.1, x, 20.0),
        "Threshold(threshold=0.1, value=20.0)",
    ),
    (nn.Hardtanh(-2.0, 0.5), lambda x: np.clip(x, -2, 0.5), "Hardtanh(min_val=-2.0, max_val=0.5)"),
    (nn.ReLU6(), lambda x: np.clip(x, 0, 6), "ReLU6()"),
    (nn.ELU(0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)), "ELU(alpha=0.7)"),
    (nn.CELU(0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x / 0.7)), "CELU(alpha=0.7)"),
    (
        nn.SELU(),
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
        "SELU()",
    ),
    (nn.PReLU(), lambda x: np.where(x > 0, x, 0.25 * x), "PReLU(num_parameters=1)"),
    (
        nn.RReLU(0.1, 0.3).eval(),
        lambda x: np.where(x > 0, x, 0.2 * x),
        "RReLU(lower=0.1, upper=0.3)",
    ),
    (nn.GLU(), lambda x: x[..., :2] * sigmoid(x[..., 2:]), "GLU(dim=-1)"),
    (nn.LogSigmoid(), lambda x: np.log(sigmoid(x)), "LogSigmoid()"),
    (nn.Hardshrink(), lambda x: np.where(abs(x) > 0.5, x, 0), "Hardshrink(0.5)"),
    (
        nn.Softshrink(0.3),
        lambda x: np.sign(x) * np.maximum(abs(x) - 0.3, 0),
        "Softshrink(0.3)",
    ),
    (nn.Tanhshrink(), lambda x: x - np.tanh(x), "Tanhshrink()"),
    (nn.Softsign(), lambda x: x / (1 + abs(x)), "Softsign()"),
    (
        nn.Softplus(2.0, 15.0),
        lambda x: np.log1p(np.exp(2 * x)) / 2,
        "Softplus(beta=2.0, threshold=15.0)",
    ),
    (nn.Hardsigmoid(), lambda x: np.clip(x / 6 + 0.5, 0, 1), "Hardsigmoid()"),
    (nn.Hardswish(), lambda x: x * np.clip(x / 6 + 0.5, 0, 1), "Hardswish()"),
    (nn.Mish(), lambda x: x * np.tanh(np.log1p(np.exp(x))), "Mish()"),
]


@pytest.mark.parametrize(
    "layer, want, text", ACTIVATIONS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_activations_with_settings(layer: nn.Module, want: Callable, text: str) -> None:
    x = normal(5, 4) * 2
    layer = copy.deepcopy(layer).to(treadle.float64)
    np.testing.assert_allclose(to_numpy(layer(x)), want(to_numpy(x)), rtol=1e-9, atol=1e-12)
    assert repr(layer) == text
    if hasattr(layer, "inplace"):
        layer.inplace = True
        y = x.clone()
        assert layer(y) is y
        np.testing.assert_allclose(to_numpy(y), want(to_numpy(x)), rtol=1e-9, atol=1e-12)


def test_inplace_activations():
    for layer in (nn.ReLU(inplace=True), nn.LeakyReLU(0.1, inplace=True), nn.SiLU(inplace=True)):
        x = treadle.tensor([-1.0, 2.0])
        assert layer(x).data_ptr() == x.data_ptr()


def test_softmax_without_dim_warns():
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        check(nn.Softmax()(tensor([[1.0, 1.0]])), [[0.5, 0.5]])


def test_softmax_over_channels_and_gumbel() -> None:
    x = normal(2, 3, 2, 2)
    treadle.testing.assert_close(
        nn.Softmax2d()(x).sum(1), treadle.ones(2, 2, 2, dtype=treadle.float64)
    )
    treadle.manual_seed(0)
    logits = treadle.tensor([[1.0, 2.0, 0.0]]).expand(4000, 3).clone().requires_grad_()
    hard = F.gumbel_softmax(logits, tau=0.5, hard=True)
    assert bool((hard.sum(1) == 1).all())
    share = hard.detach().mean(0).numpy()
    e = np.exp([1.0, 2.0, 0.0])
    np.testing.assert_allclose(share, e / e.sum(), atol=0.04)
    hard[:, 0].sum().backward()
    assert logits.grad.abs().sum().item() > 0


def test_hardtanh_by_its_older_names() -> None:
    with pytest.warns(FutureWarning, match="`min_value` is deprecated and renamed to `min_val`"):
        layer = nn.Hardtanh(min_value=-2.0, max_val=3.0)
    assert (layer.min_val, layer.max_val) == (-2.0, 3.0)
