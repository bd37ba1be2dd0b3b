"""Gradients of resampling where most elements of the input receive none, whose kernels pass over
those elements, and where all receive some.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle
import treadle.nn.functional as F


@pytest.mark.parametrize(
    "outer, size, out, inner",
    [(30, 4000, 5, 1), (3, 4000, 5, 7), (2, 100, 4000, 1), (2, 100, 4000, 3), (70, 1000, 1500, 1)],
)
def test_nearest_adds_the_gradients_to_their_inputs(
    outer: int, size: int, out: int, inner: int
) -> None:
    shape = (2, outer, size) if inner == 1 else (2, outer, size, inner)
    x = treadle.zeros(*shape, dtype=treadle.float64, requires_grad=True)
    y = F.interpolate(x, (out,) if inner == 1 else (out, inner))
    grad = np.random.default_rng(0).standard_normal(y.shape)
    y.backward(treadle.tensor(grad))
    expected = np.zeros(shape)
    np.add.at(expected, (slice(None), slice(None), np.arange(out) * size // out), grad)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("channels, size", [(1, 80), (5, 40)])
def test_few_points_in_an_image_have_the_gradients_of_many(
    mode: str, channels: int, size: int
) -> None:
    """Points with a gradient of zero make them many. Some of the others are at one place."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, channels, size, size))
    few = rng.uniform(-1.2, 1.2, (2, 1, 7, 2))
    few[:, :, 3:5] = few[:, :, :1]
    grad = rng.standard_normal((2, channels, 1, 7))
    added = 400

    def gradients(grid: np.ndarray, of_output: np.ndarray) -> list[np.ndarray]:
        x = treadle.tensor(image, requires_grad=True)
        points = treadle.tensor(grid, requires_grad=True)
        y = F.grid_sample(x, points, mode=mode, align_corners=False)
        y.backward(treadle.tensor(of_output))
        assert x.grad is not None and points.grad is not None
        return [x.grad.numpy(), points.grad.numpy()]

    by_few = gradients(few, grad)
    more = rng.uniform(-1, 1, (2, 1, added, 2))
    by_many = gradients(
        np.concatenate([few, more], 2),
        np.concatenate([grad, np.zeros((2, channels, 1, added))], 3),
    )
    np.testing.assert_array_equal(by_few[0], by_many[0])
    np.testing.assert_array_equal(by_few[1], by_many[1][:, :, :7])
    assert np.count_nonzero(by_few[0]) > 0
