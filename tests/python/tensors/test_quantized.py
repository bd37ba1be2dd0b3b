"""Quantized tensors: what they are made of, their operators, and products in whole numbers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import itertools
import os
import subprocess
import sys
from typing import Any, Callable

import numpy as np
import pytest

import treadle
import treadle.nn.functional as F

DTYPES = {
    treadle.quint8: (0, 255),
    treadle.qint8: (-128, 127),
    treadle.qint32: (-(2**31), 2**31 - 1),
}


def fails(kind: type, message: str, function: Callable[..., Any], *args: Any, **named: Any) -> None:
    with pytest.raises(kind) as error:
        function(*args, **named)
    assert str(error.value) == message


def weights(*shape: int, per_channel: bool = True, seed: int = 0) -> treadle.Tensor:
    rng = np.random.default_rng(seed)
    w = treadle.from_numpy(rng.standard_normal(shape).astype(np.float32))
    if not per_channel:
        return treadle.quantize_per_tensor(w, 0.03, 0, treadle.qint8)
    scales = treadle.from_numpy(rng.uniform(0.01, 0.05, shape[0]))
    return treadle.quantize_per_channel(
        w, scales, treadle.zeros(shape[0], dtype=treadle.int64), 0, treadle.qint8
    )


def activations(*shape: int, zero: int = 60, scale: float = 0.02) -> treadle.Tensor:
    rng = np.random.default_rng(1)
    x = treadle.from_numpy(rng.standard_normal(shape).astype(np.float32))
    # Of 7 bits: all processors add these exactly.
    return treadle.quantize_per_tensor(
        x.clamp(-zero * scale, (127 - zero) * scale), scale, zero, treadle.quint8
    )


# ---- what a tensor is made of ----


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounds_to_the_nearest_and_to_the_even_one(dtype: treadle.dtype) -> None:
    x = treadle.tensor([0.0, 0.25, 0.75, 1.24, -0.25, -0.75, 1e12, -1e12, float("inf")])
    q = treadle.quantize_per_tensor(x, 0.5, 10, dtype)
    low, high = DTYPES[dtype]
    assert q.int_repr().tolist() == [10, 10, 12, 12, 10, 8, high, low, high]
    assert q.dtype is dtype and q.is_quantized and q.shape == x.shape
    assert (q.q_scale(), q.q_zero_point(), q.qscheme()) == (0.5, 10, treadle.per_tensor_affine)
    assert q[:6].dequantize().tolist() == [0, 0, 1, 1, 0, -1]


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last", "turned"])
def test_a_scale_for_each_channel(axis: int, layout: str) -> None:
    x = treadle.randn(3, 4, 5, 6)
    if layout == "channels_last":
        x = x.contiguous(memory_format=treadle.channels_last)
    if layout == "turned":
        x = x.permute(1, 0, 3, 2)
    n = x.shape[axis]
    scales, zeros = treadle.rand(n, dtype=treadle.float64) + 0.1, treadle.arange(n)
    q = treadle.quantize_per_channel(x, scales, zeros, axis, treadle.qint8)
    view = [1] * 4
    view[axis] = n
    s, z = scales.float().view(view), zeros.view(view)
    expected = (treadle.round(x * (1 / s)) + z).clamp(-128, 127)
    assert treadle.equal(q.int_repr().float(), expected)
    treadle.testing.assert_close(q.dequantize(), (expected - z) * s)
    assert q.q_per_channel_axis() == axis % 4 and q.qscheme() == treadle.per_channel_affine
    assert treadle.equal(q.q_per_channel_scales(), scales)
    assert treadle.equal(q.q_per_channel_zero_points(), zeros)


@pytest.mark.parametrize("reduce_range", [False, True])
@pytest.mark.parametrize("dtype", [treadle.quint8, treadle.qint8])
def test_chosen_scales_cover_all_numbers(dtype: treadle.dtype, reduce_range: bool) -> None:
    for x in (treadle.linspace(-1, 3, 50), treadle.linspace(2, 3, 50), -treadle.ones(4)):
        q = treadle.quantize_per_tensor_dynamic(x, dtype, reduce_range)
        assert (q.dequantize() - x).abs().max() <= q.q_scale() / 2 + 1e-6
        zero = treadle.quantize_per_tensor(treadle.zeros(1), q.q_scale(), q.q_zero_point(), dtype)
        assert zero.dequantize().item() == 0
    assert treadle._choose_qparams_per_tensor(treadle.tensor([-1.0, 3.0])) == (4 / 255, 64)
    assert (
        treadle.quantize_per_tensor_dynamic(treadle.zeros(3), dtype, reduce_range).q_scale() == 0.1
    )


def test_lists_and_tensors_of_scales() -> None:
    a, b = treadle.quantize_per_tensor(
        [treadle.ones(2), treadle.ones(3)],
        treadle.tensor([0.5, 0.25]),
        treadle.tensor([0, 1]),
        treadle.qint8,
    )
    assert a.int_repr().tolist() == [2, 2] and b.int_repr().tolist() == [5, 5, 5]
    assert [t.tolist() for t in treadle.dequantize([a, b])] == [[1, 1], [1, 1, 1]]
    c = treadle.quantize_per_tensor(
        treadle.ones(2), treadle.tensor(0.5), treadle.tensor(3), treadle.qint8
    )
    assert c.int_repr().tolist() == [5, 5]
    assert treadle.ones(2, dtype=treadle.float16).dequantize().dtype is treadle.float32


def test_what_is_no_quantized_tensor_is_refused() -> None:
    x = treadle.ones(2, 3)
    quantize = treadle.quantize_per_tensor
    fails(
        NotImplementedError,
        "quantize_per_tensor: expected the dtype quint8, qint8 or qint32, got treadle.float32",
        quantize,
        x,
        1.0,
        0,
        treadle.float32,
    )
    fails(
        RuntimeError,
        "quantize_per_tensor: expected positive scales, got 0.0",
        quantize,
        x,
        0.0,
        0,
        treadle.qint8,
    )
    fails(
        RuntimeError,
        "quantize_per_tensor: expected positive scales, got nan",
        quantize,
        x,
        float("nan"),
        0,
        treadle.qint8,
    )
    fails(
        RuntimeError,
        "quantize_per_tensor: expected zero points from 0 to 255, got 256",
        quantize,
        x,
        1.0,
        256,
        treadle.quint8,
    )
    fails(
        RuntimeError,
        "quantize_per_channel: expected 3 scales and zero points, got shape (2,)",
        treadle.quantize_per_channel,
        x,
        treadle.ones(2),
        treadle.zeros(3),
        1,
        treadle.qint8,
    )
    fails(
        RuntimeError,
        "_choose_qparams_per_tensor: expected finite numbers, got inf",
        treadle._choose_qparams_per_tensor,
        treadle.tensor([1, float("inf")]),
    )
    q = quantize(x, 1.0, 0, treadle.qint8)
    fails(
        RuntimeError,
        "q_per_channel_scales: expected a quantized tensor with a scale for each "
        "channel, got one with a single scale",
        q.q_per_channel_scales,
    )
    w = weights(2, 3)
    fails(
        RuntimeError,
        "q_scale: expected a quantized tensor with one scale, got one with a scale "
        "for each channel; call dequantize()",
        w.q_scale,
    )
    fails(
        NotImplementedError,
        "exp: expected strided tensors, got one of layout quantized; call to_dense()",
        q.exp,
    )


def test_text() -> None:
    q = treadle.quantize_per_tensor(treadle.tensor([0.5, -1.0]), 0.5, 3, treadle.quint8)
    assert repr(q) == (
        "tensor([ 0.5000, -1.0000], size=(2,), dtype=treadle.quint8,\n"
        "       quantization_scheme=treadle.per_tensor_affine, scale=0.5, zero_point=3)"
    )


# ---- copies ----


@pytest.mark.parametrize("per_channel", [False, True])
def test_copies_and_files(per_channel: bool) -> None:
    w = weights(3, 4, per_channel=per_channel)
    copies = [copy.deepcopy(w), w.clone(), w.detach(), w.cpu(), w.contiguous()]
    for again in copies:
        assert again.dtype is treadle.qint8 and treadle.equal(again, w)
    other = treadle.empty_like(w)
    other.copy_(w)
    assert treadle.equal(other, w)
    other.copy_(treadle.zeros(3, 4))
    assert other.int_repr().abs().max() == 0
    layer = treadle.nn.Module()
    layer.register_buffer("w", w)
    twin = treadle.nn.Module()
    twin.register_buffer("w", treadle.empty_like(w))
    twin.load_state_dict(layer.state_dict())
    assert treadle.equal(twin.w, w)


# ---- operators ----


def test_what_moves_elements_keeps_whole_numbers() -> None:
    q = activations(2, 3, 4, 5)
    ints = q.int_repr()
    index = treadle.tensor([1, 0])
    for f in (
        lambda t: t.view(6, 20),
        lambda t: t.permute(3, 0, 2, 1),
        lambda t: t[1],
        lambda t: t[:, 1:],
        lambda t: t.flatten(1),
        lambda t: t.reshape(-1),
        lambda t: t.transpose(0, 1),
        lambda t: t.unsqueeze(0),
        lambda t: t.index_select(0, index),
        lambda t: t.flip(1),
        lambda t: t.narrow(2, 1, 2),
        lambda t: t.expand(2, 3, 4, 5),
        lambda t: t.chunk(2)[1],
        lambda t: F.max_pool2d(t, 2),
        lambda t: treadle.cat([t, t], 1),
    ):
        result = f(q)
        assert result.is_quantized and result.q_scale() == q.q_scale()
        assert treadle.equal(result.int_repr(), f(ints))


def test_reshape_copies_where_the_order_in_memory_is_another() -> None:
    q = activations(2, 3, 4, 5).contiguous(memory_format=treadle.channels_last)
    for f in (lambda t: t.flatten(1), lambda t: t.reshape(6, 20), lambda t: t.reshape(-1)):
        assert treadle.equal(f(q).int_repr(), f(q.int_repr()))


def test_bounds_and_means() -> None:
    q = activations(2, 3, 8, 8)
    x = q.dequantize()
    for f in (
        F.relu,
        F.relu6,
        lambda t: t.clamp(-0.5, 0.5),
        lambda t: F.hardtanh(t, -0.1, 0.7),
        lambda t: F.avg_pool2d(t, 2),
        lambda t: F.adaptive_avg_pool2d(t, 1),
        lambda t: t.mean([2, 3]),
        lambda t: F.interpolate(t, scale_factor=2),
    ):
        result = f(q)
        assert result.is_quantized
        expected = treadle.quantize_per_tensor(f(x), q.q_scale(), q.q_zero_point(), q.dtype)
        assert treadle.equal(result, expected)
    assert treadle.equal(q > 0.3, x > 0.3) and treadle.equal(q == q, x == x)
    y = q.clone()
    y.relu_()
    assert treadle.equal(y, F.relu(q))


# ---- products ----


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 200])
def test_linear(rows: int, relu: bool, per_channel: bool) -> None:
    x, w, b = activations(rows, 40), weights(24, 40, per_channel=per_channel), treadle.randn(24)
    exact = F.linear(x.dequantize().double(), w.dequantize().double(), b.double())
    exact = exact.relu() if relu else exact
    got = treadle._quantized_linear(x, w, b, 0.05, 100, relu)
    assert got.dtype is treadle.quint8 and got.q_scale() == 0.05 and got.q_zero_point() == 100
    whole = (exact / 0.05).round().add(100).clamp(0, 255)
    assert (got.int_repr() - whole).abs().max() <= 1 and (
        got.int_repr() != whole
    ).double().mean() < 0.01
    again = treadle._quantized_linear(x.view(rows, 1, 40), w, None, 0.05, 100, relu)
    assert again.shape == (rows, 1, 24)
    real = x.dequantize()
    result = treadle._quantized_linear_dynamic(real, w, b, relu)
    scale, zero = treadle._choose_qparams_per_tensor(real, True)
    rounded = treadle.quantize_per_tensor(real, scale, zero, treadle.quint8).dequantize()
    expected = F.linear(rounded, w.dequantize(), b)
    treadle.testing.assert_close(
        result, expected.relu() if relu else expected, atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("groups", [1, 2, 8])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("batched", [True, False])
def test_convolution(dims: int, groups: int, batched: bool) -> None:
    x = activations(*((5,) if batched else ()), 8, *(9,) * dims)
    w, b = weights(16, 8 // groups, *(3,) * dims), treadle.randn(16)
    convolve = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
    for relu, bias, stride, padding, dilation in itertools.product(
        (False, True), (b, None), (1, 2), (0, 1), (1, 2)
    ):
        exact = convolve(
            x.dequantize().double(),
            w.dequantize().double(),
            None if bias is None else bias.double(),
            stride,
            padding,
            dilation,
            groups,
        )
        exact = exact.relu() if relu else exact
        got = treadle._quantized_convolution(
            x, w, bias, [stride], [padding], [dilation], groups, 0.1, 90, relu
        )
        whole = (exact / 0.1).round().add(90).clamp(0, 255)
        assert got.shape == exact.shape
        assert (got.int_repr() - whole).abs().max() <= 1
        assert (got.int_repr() != whole).double().mean() < 0.02


def test_a_convolution_writes_its_result_alone() -> None:
    """Of the shapes with which oneDNN's kernel for 1 x 1 writes behind its memory, if it is told of
    zero points. The C library looks after the memory."""
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import treadle, test_quantized as t\n"
        "for channels in (64, 192):\n"
        "  x, w = t.activations(1, channels, 6, 6), t.weights(384, channels, 1, 1)\n"
        "  x = x.contiguous(memory_format=treadle.channels_last)\n"
        "  for i in range(30):\n"
        "    treadle._quantized_convolution(x, w, None, [1], [0], [1], 1, 0.1, 90)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, os.path.dirname(__file__)],
        env={
            **os.environ,
            "LD_PRELOAD": "libc_malloc_debug.so.0",
            "GLIBC_TUNABLES": "glibc.malloc.check=3",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_a_weight_that_changes_is_packed_again() -> None:
    x, w = activations(4, 16), weights(8, 16)
    first = treadle._quantized_linear(x, w, None, 0.1, 100)
    w.copy_(treadle.zeros(8, 16))
    second = treadle._quantized_linear(x, w, None, 0.1, 100)
    assert (first.int_repr() != 100).any() and (second.int_repr() == 100).all()


def test_the_same_bits_at_any_number_of_threads() -> None:
    x, w, image, kernel = (
        activations(300, 64),
        weights(40, 64),
        activations(9, 16, 12, 12),
        weights(8, 16, 3, 3),
    )
    results = []
    before = treadle.get_num_threads()
    try:
        for threads in (1, 2, 3):
            treadle.set_num_threads(threads)
            y = treadle._quantized_linear(x, w, None, 0.1, 100)
            z = treadle._quantized_convolution(image, kernel, None, [1], [1], [1], 1, 0.1, 100)
            results.append((y.int_repr(), z.int_repr()))
    finally:
        treadle.set_num_threads(before)
    assert all(
        treadle.equal(y, results[0][0]) and treadle.equal(z, results[0][1]) for y, z in results
    )


@pytest.mark.parametrize("weight", ["zero points", "quint8", "long sums"])
def test_weights_without_a_kernel_are_computed_in_float(weight: str) -> None:
    x, k = activations(3, 20), 20
    if weight == "long sums":
        k = 70000
        x = activations(3, k)
    real = treadle.randn(5, k) * 0.01
    if weight == "quint8":
        w = treadle.quantize_per_tensor(real, 0.001, 128, treadle.quint8)
    else:
        zeros = treadle.full((5,), 3 if weight == "zero points" else 0)
        w = treadle.quantize_per_channel(real, treadle.full((5,), 0.001), zeros, 0, treadle.qint8)
    got = treadle._quantized_linear(x, w, None, 0.05, 100)
    expected = treadle.quantize_per_tensor(
        F.linear(x.dequantize(), w.dequantize()), 0.05, 100, treadle.quint8
    )
    assert treadle.equal(got, expected)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("relu", [False, True])
def test_sums_and_products(relu: bool, last: bool) -> None:
    a, b = activations(2, 4, 5, 6), activations(2, 4, 5, 6, zero=30, scale=0.05).flip(0)
    if last:
        a, b = (t.contiguous(memory_format=treadle.channels_last) for t in (a, b))
    for f, g in ((treadle._quantized_add, treadle.add), (treadle._quantized_mul, treadle.mul)):
        exact = g(a.dequantize().double(), b.dequantize().double())
        whole = ((exact.relu() if relu else exact) / 0.03).round().add(70).clamp(0, 255)
        got = f(a, b, 0.03, 70, relu)
        assert (got.int_repr() - whole).abs().max() <= 1
        assert (got.int_repr() != whole).double().mean() < 0.1  # many are halves
        assert f(a, b[:, :, :1], 0.03, 70, relu).shape == a.shape
    joined = treadle._quantized_cat([a, b], 1, 0.05, 20)
    expected = treadle.cat([a.dequantize(), b.dequantize()], 1)
    assert treadle.equal(joined, treadle.quantize_per_tensor(expected, 0.05, 20, treadle.quint8))


def test_products_that_do_not_fit_are_refused() -> None:
    x, w = activations(3, 8), weights(4, 8)
    linear, convolve = treadle._quantized_linear, treadle._quantized_convolution
    fails(
        RuntimeError,
        "_quantized_linear: expected input of 8 features, got shape (3, 7)",
        linear,
        x[:, :7],
        w,
        None,
        1.0,
        0,
    )
    fails(
        RuntimeError,
        "_quantized_linear: expected a bias of shape (4), got shape (3,)",
        linear,
        x,
        w,
        treadle.ones(3),
        1.0,
        0,
    )
    fails(
        RuntimeError,
        "_quantized_linear: expected a quantized tensor, got a strided one of treadle.float32",
        linear,
        x.dequantize(),
        w,
        None,
        1.0,
        0,
    )
    fails(
        RuntimeError,
        "_quantized_linear: expected positive scales, got -1.0",
        linear,
        x,
        w,
        None,
        -1.0,
        0,
    )
    fails(
        RuntimeError,
        "_quantized_convolution: expected stride > 0, got stride = (0,)",
        convolve,
        activations(1, 2, 5, 5),
        weights(2, 2, 3, 3),
        None,
        [0],
        [0],
        [1],
        1,
        1.0,
        0,
    )
    fails(
        RuntimeError,
        "_quantized_convolution: expected groups > 0, got groups = 0",
        convolve,
        activations(1, 2, 5, 5),
        weights(2, 2, 3, 3),
        None,
        [1],
        [0],
        [1],
        0,
        1.0,
        0,
    )
    with pytest.raises(RuntimeError):
        convolve(activations(1, 3, 5, 5), weights(2, 2, 3, 3), None, [1], [0], [1], 1, 1.0, 0)
    with pytest.raises(RuntimeError):
        convolve(x, w, None, [1], [0], [1], 1, 1.0, 0)
    fails(
        RuntimeError,
        "_quantized_cat: expected tensors, got none",
        treadle._quantized_cat,
        [],
        0,
        1.0,
        0,
    )
