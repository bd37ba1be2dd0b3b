"""Parameters in training: Parameter itself, clipping, vectors of parameters, and a
network that learns."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import math

import pytest

import treadle
import treadle.nn.functional as F
from treadle import nn


def test_parameter():
    source = treadle.ones(2)
    parameter = nn.Parameter(source)
    assert (
        parameter.requires_grad and parameter.is_leaf and parameter.data_ptr() == source.data_ptr()
    )
    assert isinstance(parameter, treadle.Tensor) and type(parameter * 1) is treadle.Tensor
    copied = copy.deepcopy(nn.Parameter(source, requires_grad=False))
    assert isinstance(copied, nn.Parameter) and not copied.requires_grad
    with pytest.raises(TypeError, match="expected data to be a Tensor, got list"):
        nn.Parameter([1.0])


def test_clipping():
    params = [
        nn.Parameter(treadle.zeros(2)),
        nn.Parameter(treadle.zeros(1)),
        nn.Parameter(treadle.zeros(1)),
    ]
    params[0].grad, params[1].grad = treadle.tensor([3.0, 0.0]), treadle.tensor([4.0])
    total = nn.utils.clip_grad_norm_(params, 1.0)
    assert total.item() == 5.0
    assert params[0].grad.tolist() == pytest.approx([0.6, 0.0], abs=1e-5)
    assert nn.utils.clip_grad_norm_(params, 10.0, norm_type=math.inf).item() == pytest.approx(0.8)
    nn.utils.clip_grad_value_(params, 0.5)
    assert params[1].grad.item() == 0.5
    params[0].grad = treadle.tensor([math.nan, 0.0])
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector():
    layer = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (9,)
    nn.utils.vector_to_parameters(treadle.arange(9).to(treadle.float32), layer.parameters())
    assert layer.weight.tolist() == [[0, 1], [2, 3], [4, 5]] and layer.bias.tolist() == [6, 7, 8]


def test_a_network_learns():
    treadle.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
    points = treadle.randn((200, 2))
    labels = (points[:, 0] * points[:, 1] > 0).to(treadle.int64)
    optimizer = treadle.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(points), labels)
        loss.backward()
        optimizer.step()
    assert (net(points).argmax(1) == labels).to(treadle.float32).mean().item() > 0.95


def _with_grads(*grads: treadle.Tensor) -> list:
    params = [nn.Parameter(treadle.zeros_like(grad)) for grad in grads]
    for param, grad in zip(params, grads):
        param.grad = grad
    return params


def test_clipping_of_half_precision_and_complex_gradients() -> None:
    (half,) = _with_grads(treadle.full((10,), 300.0, dtype=treadle.float16))
    assert nn.utils.clip_grad_norm_([half], 1.0).item() == 948.5
    assert half.grad[0].item() == pytest.approx(0.3162, rel=1e-3)
    complexes = _with_grads(treadle.tensor([3.0 + 0j, 4j]))
    assert nn.utils.clip_grad_norm_(complexes, 1.0).item() == 5.0
    assert complexes[0].grad.tolist() == pytest.approx([0.6, 0.8j], abs=1e-5)


@pytest.mark.parametrize("norm_type", [0.5, 1, 2, 3, math.inf])
@pytest.mark.parametrize("foreach", [None, True, False])
def test_norms_of_tensors_of_several_dtypes(norm_type: float, foreach: bool) -> None:
    dtypes = (treadle.float64, treadle.float32, treadle.bfloat16)
    values = [treadle.randn(7, dtype=dtype) for dtype in dtypes]
    together = treadle.cat([value.double() for value in values])
    expected = treadle.linalg.vector_norm(together, norm_type).item()
    found = nn.utils.get_total_norm(values, norm_type, foreach=foreach)
    assert found.dtype == treadle.float64
    assert found.item() == pytest.approx(expected, rel=1e-2)
    assert nn.utils.get_total_norm([]).item() == 0


def test_clipping_by_a_known_norm_and_of_a_generator() -> None:
    params = _with_grads(treadle.tensor([3.0]), treadle.tensor([4.0]))
    assert nn.utils.clip_grads_with_norm_(params, 1.0, treadle.tensor(10.0)) is None
    assert [p.grad.item() for p in params] == pytest.approx([0.3, 0.4])
    assert nn.utils.clip_grad_norm_((p for p in params), 0.25).item() == pytest.approx(0.5)
    assert [p.grad.item() for p in params] == pytest.approx([0.15, 0.2], rel=1e-4)


def test_zero_grad_writes_zeros_into_the_gradient() -> None:
    layer = nn.Linear(2, 2)
    layer(treadle.ones(1, 2)).sum().backward(create_graph=True)
    held = layer.weight.grad
    layer.zero_grad(set_to_none=False)
    assert held.tolist() == [[0, 0], [0, 0]] and layer.weight.grad.data_ptr() == held.data_ptr()
    layer.zero_grad()
    assert layer.weight.grad is None
