"""Max pooling over one row, with windows of any length: among equal values the first has the index,
among several NaN the last. And unpooling of many planes.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle
import treadle.nn.functional as F


def largest(row: np.ndarray, places: list[int]) -> int:
    nans = [k for k in places if row[k] != row[k]]
    return nans[-1] if nans else max(places, key=lambda k: (row[k], -k))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("kernel, dilation", [(2, 1), (23, 1), (24, 1), (100, 1), (5, 3)])
def test_windows(kernel: int, dilation: int, dtype: str) -> None:
    rows = np.random.default_rng(0).integers(-5, 5, (3, 4, 400)).astype(dtype)
    rows[0, 0, ::50] = np.nan
    rows[0, 1] = -np.inf
    rows[0, 2] = np.nan
    padding = kernel // 2
    values, indices = F.max_pool1d(
        treadle.tensor(rows), kernel, 7, padding, dilation, return_indices=True
    )
    for n, c, o in np.ndindex(*indices.shape):
        places = [o * 7 - padding + k * dilation for k in range(kernel)]
        at = largest(rows[n, c], [k for k in places if 0 <= k < 400])
        assert indices[n, c, o].item() == at
        np.testing.assert_array_equal(values[n, c, o].numpy(), rows[n, c, at])


@pytest.mark.parametrize("size", [3, 7])
def test_adaptive_windows(size: int) -> None:
    rows = np.random.default_rng(0).standard_normal((2, 3, 500)).astype(np.float32)
    values, indices = F.adaptive_max_pool1d(treadle.tensor(rows), size, return_indices=True)
    for o in range(size):
        begin, end = o * 500 // size, -(-(o + 1) * 500 // size)
        at = rows[:, :, begin:end].argmax(-1) + begin
        np.testing.assert_array_equal(indices[:, :, o].numpy(), at)
        np.testing.assert_array_equal(values[:, :, o].numpy(), rows[:, :, begin:end].max(-1))


def test_unpooling_of_many_planes() -> None:
    rng = np.random.default_rng(0)
    x = treadle.tensor(rng.permutation(3000 * 16).reshape(100, 30, 4, 4).astype(np.float32))
    x.requires_grad_()
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    back = F.max_unpool2d(values, indices, 2)
    kept = np.isin(x.detach().numpy(), values.detach().numpy())
    np.testing.assert_array_equal(
        back.detach().numpy(), np.where(kept, x.detach().numpy(), np.float32(0))
    )
    of_back = rng.standard_normal(back.shape).astype(np.float32)
    back.backward(treadle.tensor(of_back))
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), np.where(kept, of_back, np.float32(0)))
