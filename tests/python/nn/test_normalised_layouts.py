"""Normalisations of layouts that have loops of their own, with their gradients: matrices of few and
many columns, small and large planes, channels innermost in memory, rows in several bands.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle
from treadle.nn import functional

TOLERANCE = {
    treadle.float32: 2e-5,
    treadle.float64: 1e-12,
    treadle.float16: 4e-3,
    treadle.bfloat16: 3e-2,
}
BATCHES = [
    (1000, 3),
    (999, 5),
    (40, 64),
    (77, 65),
    (300, 700),
    (70, 4500),
    (2, 3, 1),
    (9, 5, 7),
    (3, 33, 7, 7),
    (2, 17, 40, 45),
    (2, 3, 3, 4, 5),
]


def numbers(sizes: tuple[int, ...], dtype: Any, seed: int, shift: float = 0.0) -> treadle.Tensor:
    values = np.random.default_rng(seed).normal(shift, 1.0, sizes)
    return treadle.tensor(values).to(dtype)


def wide(t: treadle.Tensor) -> np.ndarray:
    return t.detach().to(treadle.float64).numpy()


def close(actual: treadle.Tensor, expected: np.ndarray, tolerance: float) -> None:
    difference = np.abs(wide(actual) - expected).max()
    assert difference <= tolerance * max(1.0, np.abs(expected).max())


def normalised(
    x: np.ndarray, g: np.ndarray, w: np.ndarray, dims: tuple[int, ...], eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """xhat, and the gradient by x where xhat * w has the gradient g."""
    rstd = 1 / np.sqrt(x.var(dims, keepdims=True) + eps)
    xhat = (x - x.mean(dims, keepdims=True)) * rstd
    h = g * w
    mean, slope = h.mean(dims, keepdims=True), (h * xhat).mean(dims, keepdims=True)
    return xhat, rstd * (h - mean - xhat * slope)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["", "channels_last"])
@pytest.mark.parametrize("sizes", BATCHES, ids=str)
def test_batch_norm(dtype: Any, last: bool, sizes: tuple[int, ...]) -> None:
    x, g = numbers(sizes, dtype, 0, 1.0), numbers(sizes, dtype, 1)
    w, b = numbers((sizes[1],), dtype, 2), numbers((sizes[1],), dtype, 3)
    if last:
        order = (0, *range(2, x.dim()), 1)
        back = (0, x.dim() - 1, *range(1, x.dim() - 1))
        x = x.permute(order).contiguous().permute(back)
    for t in (x, w, b):
        t.requires_grad_()
    out = functional.batch_norm(x, None, None, w, b, training=True)
    gx, gw, gb = treadle.autograd.grad([out], [x, w, b], [g])
    dims = (0, *range(2, x.dim()))
    each = (1, -1, *(1 for _ in dims[1:]))
    xhat, expected = normalised(wide(x), wide(g), wide(w).reshape(each), dims, 1e-5)
    tolerance = TOLERANCE[dtype]
    close(out, xhat * wide(w).reshape(each) + wide(b).reshape(each), tolerance)
    close(gx, expected, tolerance)
    close(gw, (wide(g) * xhat).sum(dims), tolerance)
    close(gb, wide(g).sum(dims), tolerance)


@pytest.mark.parametrize("sizes", BATCHES, ids=str)
def test_the_variance_of_a_batch_far_from_zero(sizes: tuple[int, ...]) -> None:
    # Bands of rows differ in their means, too.
    drift = np.linspace(0.0, 3.0, sizes[0]).reshape(-1, *(1 for _ in sizes[1:]))
    values = np.random.default_rng(0).normal(1000.0, 1.0, sizes) + drift
    x = treadle.tensor(values.astype(np.float32))
    if x.numel() // sizes[1] < 3:
        return
    mean, rstd = treadle.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[1:]
    dims = (0, *range(2, x.dim()))
    assert np.allclose(mean.numpy(), wide(x).mean(dims), rtol=1e-6)
    assert np.allclose(rstd.numpy(), 1 / wide(x).std(dims), rtol=2e-5)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("sizes", [(5, 1), (1, 65), (300, 12), (100, 17), (70, 700), (3, 5000)])
def test_layer_norm_and_rms_norm(dtype: Any, sizes: tuple[int, int]) -> None:
    x, g = numbers(sizes, dtype, 0, 1.0), numbers(sizes, dtype, 1)
    w, b = numbers(sizes[1:], dtype, 2), numbers(sizes[1:], dtype, 3)
    for t in (x, w, b):
        t.requires_grad_()
    tolerance = TOLERANCE[dtype]
    out = functional.layer_norm(x, sizes[1:], w, b, 1e-2)
    gx, gw, gb = treadle.autograd.grad([out], [x, w, b], [g])
    xhat, expected = normalised(wide(x), wide(g), wide(w), (1,), 1e-2)
    close(out, xhat * wide(w) + wide(b), tolerance)
    close(gx, expected, tolerance)
    close(gw, (wide(g) * xhat).sum(0), tolerance)
    close(gb, wide(g).sum(0), tolerance)
    out = functional.rms_norm(x, sizes[1:], w, 1e-2)
    gx, gw = treadle.autograd.grad([out], [x, w], [g])
    r = 1 / np.sqrt((wide(x) ** 2).mean(1, keepdims=True) + 1e-2)
    h, xhat = wide(g) * wide(w), wide(x) * r
    close(out, xhat * wide(w), tolerance)
    close(gx, r * (h - xhat * (h * xhat).mean(1, keepdims=True)), tolerance)
    close(gw, (wide(g) * xhat).sum(0), tolerance)


@pytest.mark.parametrize("sizes", [*BATCHES, (40_000, 2)], ids=str)
def test_the_same_bits_at_any_number_of_threads(sizes: tuple[int, ...]) -> None:
    x, g = numbers(sizes, treadle.float32, 0), numbers(sizes, treadle.float32, 1)
    x.requires_grad_()

    def results() -> list[np.ndarray]:
        out = functional.batch_norm(x, None, None, training=True)
        rows = functional.layer_norm(x, sizes[-1:])
        grads = [treadle.autograd.grad([y], [x], [g])[0] for y in (out, rows)]
        return [t.detach().numpy() for t in (out, rows, *grads)]

    threads = treadle.get_num_threads()
    try:
        treadle.set_num_threads(1)
        expected = results()
        treadle.set_num_threads(3)
        assert all(np.array_equal(a, b) for a, b in zip(results(), expected))
    finally:
        treadle.set_num_threads(threads)
