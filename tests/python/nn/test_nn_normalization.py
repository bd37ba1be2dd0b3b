"""Normalisation layers against NumPy in float64."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest
from nn_arrays import array, check, normal, to_numpy

import treadle
import treadle.nn.functional as F
from treadle import nn, tensor


def test_batch_norm():
    layer = nn.BatchNorm2d(3, momentum=0.2).double()
    with treadle.no_grad():
        layer.weight.copy_(tensor([1.0, 2.0, 3.0]))
        layer.bias.copy_(tensor([0.5, 0.0, -0.5]))
    x = array(4, 3, 2, 5) * 3 + 1
    weight, bias = (p.detach().numpy()[:, None, None] for p in (layer.weight, layer.bias))
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    normal = (x - mean[:, None, None]) / np.sqrt(variance[:, None, None] + layer.eps)
    check(layer(tensor(x)), normal * weight + bias)
    count = x.size / 3
    running_mean = 0.2 * mean
    running_var = 0.8 + 0.2 * variance * count / (count - 1)
    check(layer.running_mean, running_mean)
    check(layer.running_var, running_var)
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    shifted = (x - running_mean[:, None, None]) / np.sqrt(running_var[:, None, None] + layer.eps)
    check(layer(tensor(x)), shifted * weight + bias)
    assert layer.num_batches_tracked.item() == 1


def test_batch_norm_variants():
    average = nn.BatchNorm1d(2, momentum=None, affine=False).double()
    batches = [array(5, 2), array(5, 2)]
    for batch in batches:
        average(tensor(batch))
    check(average.running_mean, np.mean([batch.mean(0) for batch in batches], 0))
    plain = nn.BatchNorm1d(2, track_running_stats=False).double().eval()
    x = array(5, 2)
    check(plain(tensor(x)), (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5))
    assert plain.running_mean is None
    with pytest.raises(ValueError, match="expected 4D input"):
        nn.BatchNorm2d(2)(treadle.zeros((3, 2)))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        nn.BatchNorm1d(2)(treadle.zeros((1, 2)))


@pytest.mark.parametrize(
    "layer, shape, axes",
    [
        (nn.InstanceNorm1d(3), (2, 3, 5), (2,)),
        (nn.InstanceNorm2d(3), (2, 3, 4, 2), (2, 3)),
        (nn.InstanceNorm3d(3), (2, 3, 2, 2, 2), (2, 3, 4)),
        (nn.BatchNorm3d(3), (2, 3, 2, 2, 2), (0, 2, 3, 4)),
    ],
)
def test_instance_and_batch_norm(layer: nn.Module, shape: tuple, axes: tuple) -> None:
    x = normal(*shape)
    y = to_numpy(layer.to(treadle.float64)(x))
    a = to_numpy(x)
    want = (a - a.mean(axes, keepdims=True)) / np.sqrt(a.var(axes, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, want, rtol=1e-8)
    with pytest.raises(ValueError, match="expected .*D input"):
        layer(x[0, 0, 0])
    if isinstance(layer, nn.BatchNorm3d):
        return
    treadle.testing.assert_close(layer(x[0]), layer(x)[0])


def test_instance_norm_running_statistics() -> None:
    layer = nn.InstanceNorm1d(2, momentum=0.5, affine=True, track_running_stats=True)
    x = treadle.randn(3, 2, 6)
    layer(x)
    a = x.numpy()
    np.testing.assert_allclose(
        layer.running_mean.numpy(), 0.5 * a.mean(2).mean(0), rtol=1e-4, atol=1e-6
    )
    np.testing.assert_allclose(
        layer.running_var.numpy(), 0.5 + 0.5 * a.var(2, ddof=1).mean(0), rtol=1e-4
    )
    layer.eval()
    want = (x - layer.running_mean[:, None]) / (layer.running_var[:, None] + 1e-5).sqrt()
    treadle.testing.assert_close(layer(x), want)
    assert repr(nn.InstanceNorm1d(2)) == (
        "InstanceNorm1d(2, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False)"
    )
    with pytest.raises(ValueError, match="more than 1 spatial element"):
        F.instance_norm(treadle.randn(2, 2, 1))


def test_sync_batch_norm_takes_the_place_of_others() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    x = treadle.randn(6, 3)
    want = net(x)
    changed = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert type(changed[1]) is nn.SyncBatchNorm
    treadle.testing.assert_close(changed(x), want)


def test_layer_norm():
    layer = nn.LayerNorm((3, 4)).double()
    x = array(2, 3, 4) * 2 + 5
    mean, variance = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    check(layer(tensor(x)), (x - mean) / np.sqrt(variance + 1e-5))
    assert nn.LayerNorm(3, bias=False).bias is None and nn.LayerNorm(3).weight.shape == (3,)


@pytest.mark.parametrize("shape", [(500, 700), (3, 40_000)])
@pytest.mark.parametrize("dtype", [treadle.float64, treadle.float32])
def test_layer_norm_of_rows_that_lie_apart(shape: tuple, dtype: treadle.dtype) -> None:
    """Many short ones, which several threads copy in pieces, and a few long ones."""
    x = (treadle.randn(shape[::-1], dtype=dtype) + 5).t()
    weight, bias = treadle.randn(shape[1], dtype=dtype), treadle.randn(shape[1], dtype=dtype)
    got = F.layer_norm(x, shape[1:], weight, bias)
    assert treadle.equal(got, F.layer_norm(x.contiguous(), shape[1:], weight, bias))
    a = to_numpy(x).astype(np.float64)
    rows = (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5)
    want = rows * to_numpy(weight) + to_numpy(bias)
    check(got, want, 1e-9 if dtype == treadle.float64 else 1e-4)


def test_group_and_rms_norm() -> None:
    layer = nn.GroupNorm(2, 4, dtype=treadle.float64)
    nn.init.normal_(layer.weight)
    x = normal(3, 4, 5)
    rows = to_numpy(x).reshape(3, 2, -1)
    y = (rows - rows.mean(2, keepdims=True)) / np.sqrt(rows.var(2, keepdims=True) + 1e-5)
    want = y.reshape(3, 4, 5) * to_numpy(layer.weight)[:, None]
    np.testing.assert_allclose(to_numpy(layer(x)), want, rtol=1e-8)
    assert repr(layer) == "GroupNorm(2, 4, eps=1e-05, affine=True)"
    with pytest.raises(ValueError, match="divisible"):
        nn.GroupNorm(3, 4)
    rms = nn.RMSNorm(5, eps=1e-3, dtype=treadle.float64)
    a = to_numpy(x)
    want = a / np.sqrt((a * a).mean(-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(to_numpy(rms(x)), want, rtol=1e-9)
    assert repr(rms) == "RMSNorm((5,), eps=0.001, elementwise_affine=True)"
    assert list(rms.state_dict()) == ["weight"]


def test_normalize() -> None:
    x = normal(2, 3, 4)
    a = to_numpy(x)
    for p, dim in ((2.0, 1), (1.0, -1), (3.0, 0)):
        norm = (abs(a) ** p).sum(dim, keepdims=True) ** (1 / p)
        np.testing.assert_allclose(to_numpy(F.normalize(x, p, dim)), a / norm, rtol=1e-9)
    assert bool((F.normalize(treadle.zeros(2, 2)) == 0).all())


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["BatchNorm", "InstanceNorm", "LazyBatchNorm", "LazyInstanceNorm"])
def test_norms_without_a_shift(kind: str, dims: int) -> None:
    make = getattr(nn, f"{kind}{dims}d")
    sizes = () if kind.startswith("Lazy") else (3,)
    norm, full = make(*sizes, affine=True, bias=False), make(*sizes, affine=True)
    x = treadle.randn(2, 3, *[4] * dims)
    treadle.testing.assert_close(norm(x), full(x))
    assert norm.bias is None and "bias" not in norm.state_dict() and "weight" in norm.state_dict()


@pytest.mark.parametrize("wrong", ["running_mean", "running_var"])
def test_statistics_of_a_dtype_without_arithmetic_write_nothing(wrong: str) -> None:
    statistics = {"running_mean": treadle.zeros(3), "running_var": treadle.ones(3)}
    small = treadle.zeros(3, dtype=treadle.uint8).view(treadle.float4_e2m1fn_x2)
    statistics[wrong] = small
    before = {name: t.view(treadle.uint8).tolist() for name, t in statistics.items()}
    message = (
        f"^batch_norm: expected {wrong} of a floating dtype with arithmetic, "
        "got treadle.float4_e2m1fn_x2$"
    )
    with pytest.raises(RuntimeError, match=message):
        F.batch_norm(treadle.randn(2, 3), **statistics, training=True)
    assert {name: t.view(treadle.uint8).tolist() for name, t in statistics.items()} == before
