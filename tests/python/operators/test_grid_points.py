"""grid_sample reads many points at once: a point has the value and the slope that it has alone,
whatever lies outside of the image.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle
import treadle.nn.functional as F

POINTS = 150  # more than a block


def sampled(
    image: np.ndarray, grid: np.ndarray, mode: str, padding: str, dtype: treadle.dtype
) -> list[np.ndarray]:
    """The values, and the gradients by the image and by the points."""
    x = treadle.tensor(image, dtype=dtype, requires_grad=True)
    points = treadle.tensor(grid, dtype=dtype, requires_grad=True)
    y = F.grid_sample(x, points, mode, padding, align_corners=False)
    gradients = treadle.autograd.grad(y.sum(), (x, points))
    return [t.detach().to(treadle.float64).numpy() for t in (y, *gradients)]


@pytest.mark.parametrize("dtype", [treadle.float32, treadle.float64, treadle.float16], ids=str)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    "dims, mode",
    [(2, "bilinear"), (2, "nearest"), (2, "bicubic"), (3, "bilinear"), (3, "nearest")],
)
def test_a_point_among_many(dims: int, mode: str, padding: str, dtype: treadle.dtype) -> None:
    rng = np.random.default_rng(0)
    image = rng.standard_normal((2, 2, *(7, 5, 6)[:dims]))
    grid = rng.uniform(-1.5, 1.5, (2, *[1] * (dims - 1), POINTS, dims))
    grid[..., 10, 0], grid[..., 11, 0], grid[..., 12, 0] = np.nan, np.inf, -1e30
    y, by_image, by_grid = sampled(image, grid, mode, padding, dtype)
    summed = np.zeros_like(by_image)
    for p in range(POINTS):
        own = sampled(image, grid[..., p : p + 1, :], mode, padding, dtype)
        np.testing.assert_array_equal(y[..., p : p + 1], own[0])
        np.testing.assert_array_equal(by_grid[..., p : p + 1, :], own[2])
        summed += own[1]
    loose = 0.05 if dtype == treadle.float16 else 1e-4
    np.testing.assert_allclose(by_image, summed, rtol=loose, atol=loose)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_pixels_that_no_point_is_near_do_not_count(mode: str) -> None:
    image = np.ones((1, 1, 9, 9))
    image[0, 0, 0, 0] = np.nan
    grid = np.random.default_rng(0).uniform(-0.2, 0.6, (1, 1, POINTS, 2))
    grid[..., ::7, :] = 3.0  # outside
    y, _, by_grid = sampled(image, grid, mode, "zeros", treadle.float32)
    outside = np.arange(POINTS) % 7 == 0
    np.testing.assert_array_equal(y[0, 0, 0, outside], 0)
    np.testing.assert_allclose(y[0, 0, 0, ~outside], 1, atol=1e-5)
    assert np.isfinite(by_grid).all()
