"""Functions of exponentials keep their digits where the logits are large: what they subtract is the
maximum, not the maximum with a logarithm added, which a large number has no digits for.

The logits are float32 numbers near an offset, whose exact results NumPy computes in float64.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle
from treadle.nn import functional as F

OFFSETS = (0.0, 1e4, -1e4, 1e6)
DIMS = range(4)


def logits(offset: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    return (offset + rng.uniform(-2, 2, (3, 5, 4, 6))).astype(np.float32)


def log_sum(x: np.ndarray, dim: int) -> np.ndarray:
    most = x.max(dim, keepdims=True)
    return most + np.log(np.exp(x - most).sum(dim, keepdims=True))


def close(actual: treadle.Tensor, exact: np.ndarray, relative: float = 3e-7) -> None:
    error = np.abs(actual.numpy().astype(np.float64) - exact)
    assert (error <= relative * np.maximum(1, np.abs(exact))).all(), error.max()


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("dim", DIMS)
def test_softmax_and_its_logarithm(offset: float, dim: int) -> None:
    x = logits(offset)
    wide = x.astype(np.float64)
    exact = wide - log_sum(wide, dim)
    for t in (treadle.tensor(x), treadle.tensor(x).transpose(0, 3).contiguous().transpose(0, 3)):
        close(treadle.log_softmax(t, dim), exact)
        close(treadle.softmax(t, dim), np.exp(exact))
        close(F.softmin(-t, dim), np.exp(exact))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("dim", DIMS)
def test_sums_of_exponentials(offset: float, dim: int) -> None:
    x = logits(offset)
    t, wide = treadle.tensor(x), x.astype(np.float64)
    close(treadle.logsumexp(t, dim, keepdim=True), log_sum(wide, dim))
    close(treadle.logcumsumexp(t, dim), np.logaddexp.accumulate(wide, dim))
    close(treadle.logaddexp(t, t.flip(dim)), np.logaddexp(wide, np.flip(wide, dim)))
    two = np.logaddexp2(wide, np.flip(wide, dim))
    close(treadle.logaddexp2(t, t.flip(dim)), two)


@pytest.mark.parametrize("offset", OFFSETS)
def test_cross_entropy_of_images(offset: float) -> None:
    x = logits(offset)
    target = np.random.default_rng(1).integers(0, 5, (3, 4, 6))
    wide = x.astype(np.float64)
    exact = np.take_along_axis(log_sum(wide, 1) - wide, target[:, None], 1)[:, 0]
    loss = F.cross_entropy(treadle.tensor(x), treadle.tensor(target), reduction="none")
    close(loss, exact)


@pytest.mark.parametrize("dim", DIMS)
def test_gradients(dim: int) -> None:
    x, grad = logits(1e6), np.random.default_rng(2).uniform(-1, 1, (3, 5, 4, 6))
    t = treadle.tensor(x, requires_grad=True)
    treadle.log_softmax(t, dim).backward(treadle.tensor(grad.astype(np.float32)))
    wide = x.astype(np.float64)
    p = np.exp(wide - log_sum(wide, dim))
    close(t.grad, grad - p * grad.sum(dim, keepdims=True), 1e-6)
