"""Modules as functions of their parameters: functional_call, stacked states of an ensemble."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import pytest

import treadle
from treadle import nn
from treadle.func import (
    functional_call,
    grad,
    replace_all_batch_norm_modules_,
    stack_module_state,
    vmap,
)
from treadle.nn.utils import stateless

X = treadle.tensor([1.0, 2.0, 3.0])


class Tied(nn.Module):
    """Two layers of one weight, and a count."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 3, bias=False)
        self.b = nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight
        self.register_buffer("count", treadle.zeros(1))

    def forward(self, x: treadle.Tensor) -> treadle.Tensor:
        self.count = self.count + 1
        return self.a(x) + 2 * self.b(x)


def test_other_parameters_for_one_call() -> None:
    layer = nn.Linear(3, 2)
    weight, bias = layer.weight, layer.bias
    values = {"weight": treadle.ones(2, 3), "bias": treadle.zeros(2)}
    assert functional_call(layer, values, (X,)).tolist() == [6, 6]
    assert functional_call(layer, values, X).tolist() == [6, 6]
    assert functional_call(layer, values, kwargs={"input": X}).tolist() == [6, 6]
    parts = tuple({name: value} for name, value in values.items())
    assert functional_call(layer, parts, X).tolist() == [6, 6]
    partly = functional_call(layer, {"weight": values["weight"]}, X)
    assert treadle.equal(partly, 6 + bias)
    assert layer.weight is weight and layer.bias is bias
    with pytest.raises(ZeroDivisionError):
        functional_call(layer, values, 1 // 0)
    with pytest.raises(TypeError, match="input"):
        functional_call(layer, values)
    assert layer.weight is weight


def test_gradients_by_parameters() -> None:
    layer = nn.Linear(3, 1)
    params = {name: p.detach() for name, p in layer.named_parameters()}
    g = grad(lambda p: functional_call(layer, p, X).sum())(params)
    assert g["weight"].tolist() == [[1, 2, 3]] and g["bias"].tolist() == [1]
    assert layer.weight.grad is None


def test_tied_weights() -> None:
    module = Tied()
    eye = treadle.eye(3)
    assert functional_call(module, {"a.weight": eye}, X).tolist() == [3, 6, 9]
    both = {"a.weight": eye, "b.weight": treadle.zeros(3, 3)}
    with pytest.raises(ValueError, match=r"\['a.weight', 'b.weight'\]; consider tie_weights=False"):
        functional_call(module, both, X)
    assert functional_call(module, both, X, tie_weights=False).tolist() == [1, 2, 3]
    assert module.b.weight is module.a.weight


def test_buffers_that_the_module_replaces() -> None:
    module, values = Tied(), {"count": treadle.ones(1)}
    functional_call(module, values, X)
    assert values["count"].tolist() == [2] and module.count.tolist() == [0]
    norm, values = nn.BatchNorm1d(2), {"running_mean": treadle.ones(2)}
    functional_call(norm, values, treadle.zeros(4, 2))
    assert treadle.allclose(values["running_mean"], treadle.tensor(0.9))
    assert norm.running_mean.tolist() == [0, 0]


def test_names_that_do_not_fit() -> None:
    layer = nn.Linear(3, 2)
    values = {"weight": treadle.ones(2, 3)}
    with pytest.raises(RuntimeError, match=r"missing: \['bias'\], unexpected: \[\]"):
        functional_call(layer, values, X, strict=True)
    with pytest.raises(RuntimeError, match=r"unexpected: \['nope'\]"):
        functional_call(layer, {**values, "nope": X}, X, strict=True)
    functional_call(layer, {**values, "nope": X, "no.such": X}, X)
    functional_call(Tied(), {"a.weight": treadle.eye(3), "count": X[:1]}, X, strict=True)
    with pytest.raises(ValueError, match="'weight' in two"):
        functional_call(layer, (values, values), X)
    with pytest.raises(ValueError, match="got int"):
        functional_call(layer, 3, X)
    with pytest.raises(TypeError, match="got int for 'weight'"):
        functional_call(layer, {"weight": 3}, X)


def test_the_older_place() -> None:
    layer, values = nn.Linear(3, 2), {"weight": treadle.ones(2, 3), "bias": treadle.zeros(2)}
    with pytest.warns(FutureWarning, match="func.functional_call"):
        assert stateless.functional_call(layer, values, X).tolist() == [6, 6]
    with stateless._reparametrize_module(layer, values):
        assert layer(X).tolist() == [6, 6]


def test_an_ensemble() -> None:
    models = [nn.Linear(3, 2) for _ in range(4)]
    params, buffers = stack_module_state(models)
    assert params["weight"].shape == (4, 2, 3) and buffers == {}
    assert all(p.is_leaf and p.requires_grad for p in params.values())

    def run(params: dict, x: treadle.Tensor) -> Any:
        return functional_call(models[0], params, x)

    together = vmap(run, in_dims=(0, None))(params, X)
    assert treadle.allclose(together, treadle.stack([model(X) for model in models]))
    together.sum().backward()
    assert treadle.allclose(params["bias"].grad, treadle.ones(4, 2))
    with pytest.raises(RuntimeError, match="got 0"):
        stack_module_state([])
    with pytest.raises(RuntimeError, match="same class"):
        stack_module_state([models[0], nn.ReLU()])
    with pytest.raises(RuntimeError, match="training mode"):
        stack_module_state([models[0], nn.Linear(3, 2).eval()])
    frozen = nn.Linear(3, 2).requires_grad_(False)
    with pytest.raises(RuntimeError, match="all require grad"):
        stack_module_state([models[0], frozen])


def test_batch_norm_without_running_statistics() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    assert replace_all_batch_norm_modules_(model) is model
    assert model[1].running_mean is None and not model[1].track_running_stats
    model.eval()
    out = model(treadle.randn(8, 3))
    assert treadle.allclose(out.mean(0), treadle.zeros(3), atol=1e-5)
