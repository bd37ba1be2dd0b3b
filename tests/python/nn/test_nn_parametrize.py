"""Weights computed from others: the weight and spectral norm hooks, and parametrizations."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from nn_arrays import normal, to_numpy

import treadle
from treadle import nn
from treadle.nn.utils import parametrizations, parametrize


def test_weight_norm_hook() -> None:
    layer = nn.Linear(3, 4, dtype=treadle.float64)
    weight, x = layer.weight.detach().clone(), normal(2, 3)
    want = layer(x)
    nn.utils.weight_norm(layer)
    assert sorted(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
    assert layer.weight_g.shape == (4, 1)
    treadle.testing.assert_close(layer(x), want)
    layer(x).sum().backward()
    assert layer.weight_g.grad is not None and layer.weight_v.grad is not None
    with treadle.no_grad():
        layer.weight_g.mul_(2)
    treadle.testing.assert_close(layer(x) - layer.bias, 2 * (want - layer.bias))
    with pytest.raises(RuntimeError, match="two weight_norm hooks"):
        nn.utils.weight_norm(layer)
    nn.utils.remove_weight_norm(layer)
    treadle.testing.assert_close(layer.weight.detach(), 2 * weight)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError, match="not found"):
        nn.utils.remove_weight_norm(layer)


def test_spectral_norm_hook() -> None:
    treadle.manual_seed(0)
    layer = nn.utils.spectral_norm(nn.Linear(3, 4, dtype=treadle.float64), n_power_iterations=50)
    x = normal(2, 3)
    layer(x).sum().backward()
    assert layer.weight_orig.grad is not None
    largest = np.linalg.svd(to_numpy(layer.weight_orig), compute_uv=False)[0]
    np.testing.assert_allclose(
        to_numpy(layer.weight), to_numpy(layer.weight_orig) / largest, rtol=1e-6
    )
    assert sorted(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
    nn.utils.remove_spectral_norm(layer)
    np.testing.assert_allclose(
        np.linalg.svd(to_numpy(layer.weight), compute_uv=False)[0], 1, rtol=1e-6
    )


class _Symmetric(nn.Module):
    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        return x.triu() + x.triu(1).transpose(-2, -1)


class _Doubled(nn.Module):
    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        return x * 2

    def right_inverse(self, x: treadle.Tensor) -> treadle.Tensor:
        return x / 2


def test_parametrize() -> None:
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", _Symmetric())
    assert treadle.equal(layer.weight, layer.weight.t())
    assert parametrize.is_parametrized(layer, "weight") and not parametrize.is_parametrized(
        layer, "bias"
    )
    assert isinstance(layer, nn.Linear) and type(layer).__name__ == "ParametrizedLinear"
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    assert sorted(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    layer(treadle.randn(2, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    twin = copy.deepcopy(layer)
    assert treadle.equal(twin.weight, layer.weight)
    with treadle.no_grad():
        twin.parametrizations.weight.original.zero_()
    assert not treadle.equal(twin.weight, layer.weight)
    value = layer.weight.detach().clone()
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and treadle.equal(layer.weight, value)
    assert isinstance(layer.weight, nn.Parameter)
    assert sorted(layer.state_dict()) == ["bias", "weight"]


def test_parametrize_right_inverse_and_errors() -> None:
    layer = nn.Linear(2, 2)
    weight = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", _Doubled())
    treadle.testing.assert_close(layer.weight.detach(), weight)
    layer.weight = treadle.ones(2, 2)
    assert bool((layer.weight == 1).all())
    assert bool((layer.parametrizations.weight.original == 0.5).all())
    parametrize.register_parametrization(layer, "weight", _Doubled())
    assert bool((layer.weight == 1).all())

    class Sum(nn.Module):
        def forward(self, x: treadle.Tensor) -> treadle.Tensor:
            return x.sum()

    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", Sum())
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(nn.Linear(2, 2), "weigth", _Doubled())
    with pytest.raises(ValueError, match="does not have a parametrization"):
        parametrize.remove_parametrizations(nn.Linear(2, 2), "weight")


def test_parametrizations() -> None:
    treadle.manual_seed(0)
    layer = nn.Linear(3, 4, dtype=treadle.float64)
    weight = layer.weight.detach().clone()
    parametrizations.weight_norm(layer)
    treadle.testing.assert_close(layer.weight.detach(), weight)
    assert layer.parametrizations.weight.original0.shape == (4, 1)
    assert treadle.equal(layer.parametrizations.weight.original1.detach(), weight)

    layer = parametrizations.spectral_norm(nn.Linear(3, 4, dtype=treadle.float64)).eval()
    np.testing.assert_allclose(
        np.linalg.svd(to_numpy(layer.weight), compute_uv=False)[0], 1, rtol=1e-2
    )

    for rows, columns in ((4, 4), (5, 3), (3, 5)):
        layer = nn.Linear(columns, rows, dtype=treadle.float64)
        parametrizations.orthogonal(layer)
        layer(normal(2, columns)).square().sum().backward()
        original = layer.parametrizations.weight.original
        assert original.grad is not None
        with treadle.no_grad():
            original.add_(normal(*original.shape))
        w = to_numpy(layer.weight)
        product = w.T @ w if rows >= columns else w @ w.T
        np.testing.assert_allclose(product, np.eye(min(rows, columns)), atol=1e-8)


def test_a_later_parametrization_has_an_inverse_of_the_same_kind() -> None:
    class Inverse(nn.Module):
        def __init__(self, inverse: Any) -> None:
            super().__init__()
            self.right_inverse = inverse

        def forward(self, x: treadle.Tensor) -> treadle.Tensor:
            return x

    layer = nn.Linear(3, 4)
    parametrize.register_parametrization(layer, "weight", Inverse(lambda x: x))
    must = "parametrization.right_inverse outputs must have the same"
    for inverse, message in (
        (lambda x: (x, x), "parametrization.right_inverse must return a tensor, got tuple"),
        (
            lambda x: x.bool(),
            f"{must} dtype as the tensor: expected {treadle.float32}, got {treadle.bool}",
        ),
        (
            lambda x: x[:-1],
            f"{must} shape as the tensor: expected {layer.weight.shape}, "
            f"got {layer.weight[:-1].shape}",
        ),
    ):
        with pytest.raises(ValueError) as error:
            parametrize.register_parametrization(layer, "weight", Inverse(inverse))
        assert str(error.value) == message
        assert len(layer.parametrizations.weight) == 1


def test_weight_norm_loads_what_the_older_function_saved() -> None:
    older = treadle.nn.utils.weight_norm(nn.Linear(4, 5))
    layer = treadle.nn.utils.parametrizations.weight_norm(nn.Linear(4, 5))
    layer.load_state_dict(older.state_dict())
    x = treadle.ones(2, 4)
    assert treadle.allclose(layer(x), older(x))
    again = treadle.nn.utils.parametrizations.weight_norm(nn.Linear(4, 5))
    again.load_state_dict(layer.state_dict())
    assert treadle.equal(again(x), layer(x))
