"""Derivatives at single points where a formula is a limit, a choice or a convention, against
numbers known from mathematics. test_gradients_forward.py and test_gradients_kinks.py look for the
same classes in every operator.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np
import pytest

import treadle
import treadle.nn.functional as F
from treadle.autograd import gradcheck, gradgradcheck
from treadle.autograd.functional import hessian
from treadle.func import jacfwd, jacrev

INF, NAN = math.inf, math.nan


def leaf(values: Any, dtype: treadle.dtype = treadle.float64) -> treadle.Tensor:
    return treadle.tensor(values, dtype=dtype, requires_grad=True)


def derivatives(f: Callable[[treadle.Tensor], treadle.Tensor], x: float, count: int) -> list[float]:
    """The first ones of f at x."""
    at = leaf(x)
    value, found = f(at), []
    for _ in range(count):
        (value,) = treadle.autograd.grad(value, at, create_graph=True)
        found.append(value.item())
    return found


def assert_grad(value: treadle.Tensor, x: treadle.Tensor, expected: Any) -> None:
    for create_graph in (False, True):
        (got,) = treadle.autograd.grad(value.sum(), x, retain_graph=True, create_graph=create_graph)
        np.testing.assert_allclose(got.detach().numpy(), expected, rtol=1e-12, atol=1e-12)


# ---- random numbers ----


@pytest.mark.parametrize("given", ["mean and std", "mean", "std"])
def test_numbers_drawn_by_normal_are_constants(given: str) -> None:
    """So that the score function gets its gradient: of -(a - mean)^2 / 2 by the mean it is
    a - mean."""
    mean, std = leaf([0.0, 1.0, 2.0]), leaf([1.0, 0.5, 2.0])
    a = {
        "mean and std": lambda: treadle.normal(mean, std),
        "mean": lambda: treadle.normal(mean, 1.0),
        "std": lambda: treadle.normal(0.0, std),
    }[given]()
    assert a.requires_grad
    score = -((a - mean) ** 2 / 2).sum()
    (by_mean,) = treadle.autograd.grad(score, mean, retain_graph=True)
    assert treadle.equal(by_mean, (a - mean).detach())
    (by_std,) = treadle.autograd.grad(a.sum(), std, allow_unused=True)
    assert by_std is None or not by_std.any()


# ---- scans ----


def test_logcumsumexp_in_forward_mode() -> None:
    x = treadle.tensor([0.5, -1.0, 2.0, 0.0, 0.3], dtype=treadle.float64)
    f = lambda x: treadle.logcumsumexp(x, 0)
    np.testing.assert_allclose(jacfwd(f)(x).numpy(), jacrev(f)(x).numpy(), rtol=1e-12)
    y = f(x).detach()
    # The Hessian of a sum of squares at its minimum: twice the product of the Jacobian with itself.
    j = jacrev(f)(x).numpy()
    square = lambda x: ((f(x) - y) ** 2).sum()
    np.testing.assert_allclose(hessian(square, x).numpy(), 2 * j.T @ j, rtol=1e-10, atol=1e-12)


def test_logcumsumexp_of_values_far_apart() -> None:
    x = leaf([-INF, -INF, -1000.0, 0.0, 1000.0, 1000.0, -INF])
    assert_grad(treadle.logcumsumexp(x, 0), x, [0, 0, 1, 1, 2, 1, 0])


# ---- sampling ----


@pytest.mark.parametrize("mode", ["border", "reflection"])
def test_grid_sample_on_the_border(mode: str) -> None:
    """A point on the border stands still, whether backward is recorded or not."""
    image = treadle.arange(1, 17, dtype=treadle.float64).view(1, 1, 4, 4) * 2
    grid = F.affine_grid(
        treadle.tensor([[[1.0, 0, 0], [0, 1, 0]]], dtype=treadle.float64),
        (1, 1, 4, 4),
        align_corners=True,
    ).requires_grad_()
    out = F.grid_sample(image, grid, padding_mode=mode, align_corners=True)
    plain, recorded = (
        treadle.autograd.grad(out.sum(), grid, retain_graph=True, create_graph=c)[0].detach()
        for c in (False, True)
    )
    assert treadle.equal(plain, recorded)
    assert not plain[0, :, -1, 0].any() and plain[0, :, 1, 0].all()


@pytest.mark.parametrize("interpolation", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_of_points_that_are_nowhere(interpolation: str, padding: str) -> None:
    image = treadle.arange(16, dtype=treadle.float64).view(1, 1, 4, 4).requires_grad_()
    grid = leaf([[[[NAN, 0.1], [0.2, 0.3], [INF, -INF]]]])
    out = F.grid_sample(image, grid, interpolation, padding, align_corners=False)
    plain, recorded = (
        treadle.autograd.grad(out.sum(), (image, grid), retain_graph=True, create_graph=c)
        for c in (False, True)
    )
    for a, b in zip(plain, recorded):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-12, atol=1e-12)


# ---- powers ----


def test_powers_of_numbers_by_complex_and_negative_bases() -> None:
    x = leaf([0.5, 2.0])
    assert gradcheck(lambda x: treadle.pow(1 + 2j, x), (x,))
    assert gradcheck(
        lambda x: treadle.pow(treadle.tensor([-2.0, -0.5], dtype=treadle.float64), x),
        (leaf([1 + 0.5j, 2 - 1j], treadle.complex128),),
    )
    whole = leaf([2.0, 3.0])
    assert_grad(treadle.pow(-2.0, whole), whole, [NAN, NAN])


def test_powers_at_zero() -> None:
    base, exponent = leaf([0.0, 0.0, 3.0]), leaf([0.0, 2.0, 0.0])
    value = treadle.pow(base, exponent)
    assert_grad(value, base, [0, 0, 0])
    assert_grad(value, exponent, [0, 0, math.log(3)])
    (by_base,) = treadle.autograd.grad(value.sum(), base, create_graph=True)
    (mixed,) = treadle.autograd.grad(by_base[2], exponent)
    np.testing.assert_allclose(mixed.numpy(), [0, 0, 1 / 3])
    assert not jacfwd(lambda e: treadle.pow(0.0, e))(exponent.detach()).any()


# ---- losses ----


@pytest.mark.parametrize(
    "loss, second",
    [
        (lambda x, y: F.huber_loss(x, y, reduction="sum", delta=0.5), 1.0),
        (lambda x, y: F.smooth_l1_loss(x, y, reduction="sum", beta=0.5), 2.0),
    ],
)
def test_losses_that_are_square_near_zero(loss: Any, second: float) -> None:
    target = treadle.zeros(4, dtype=treadle.float64)
    x = treadle.tensor([0.0, 0.25, 2.0, -3.0], dtype=treadle.float64)
    found = hessian(lambda x: loss(x, target), x)
    np.testing.assert_allclose(found.numpy(), np.diag([second, second, 0, 0]))
    far = leaf([INF, -INF, 0.25, 1.0])
    slope = 0.5 * second  # of the line
    assert_grad(loss(far, target), far, [slope, -slope, 0.25 * second, slope])


# ---- products ----


@pytest.mark.parametrize("values", [(0.0, 3.0), (2.0, 3.0), (0.0, 0.0), (0.0, 2.0, 3.0)])
@pytest.mark.parametrize("how", ["scatter_reduce", "index_reduce", "scatter"])
def test_second_derivatives_of_products(how: str, values: tuple[float, ...]) -> None:
    index = treadle.zeros(len(values) - 1, dtype=treadle.int64)

    def product(x: treadle.Tensor) -> treadle.Tensor:
        own, rest = x[:1], x[1:]
        if how == "scatter":
            return own.scatter(0, index, rest, reduce="multiply").sum()
        return getattr(own, how)(0, index, rest, "prod").sum()

    x = treadle.tensor(values, dtype=treadle.float64)
    np.testing.assert_allclose(hessian(product, x).numpy(), hessian(lambda x: x.prod(), x).numpy())


@pytest.mark.parametrize("n, rank", [(3, 1), (3, 2), (3, 0), (4, 2), (4, 3), (2, 0), (1, 0)])
@pytest.mark.parametrize("dtype", [treadle.float64, treadle.complex128])
def test_second_derivatives_of_determinants_without_full_rank(
    n: int, rank: int, dtype: treadle.dtype
) -> None:
    treadle.manual_seed(0)
    a = treadle.zeros(2, n, n, dtype=dtype)
    a[0, :rank, :rank] = treadle.eye(rank, dtype=dtype) * 2
    a[1] = treadle.randn(n, n, dtype=dtype)
    a.requires_grad_()
    assert gradcheck(treadle.linalg.det, (a,))
    assert gradgradcheck(treadle.linalg.det, (a,))


# ---- series ----


@pytest.mark.parametrize(
    "name, expected",
    [
        ("sinc", [0, -(math.pi**2) / 3, 0, math.pi**4 / 5]),
        ("spherical_bessel_j0", [0, -1 / 3, 0, 1 / 5]),
        ("i1", [1 / 2, 0, 3 / 8]),
        ("modified_bessel_i1", [1 / 2, 0, 3 / 8]),
        ("bessel_j1", [1 / 2, 0, -3 / 8]),
        ("i1e", [1 / 2, 0]),
    ],
)
def test_derivatives_of_quotients_at_zero(name: str, expected: list[float]) -> None:
    f = getattr(treadle.special, name)
    np.testing.assert_allclose(derivatives(f, 0.0, len(expected)), expected, atol=1e-14)


@pytest.mark.parametrize("name", ["sinc", "spherical_bessel_j0", "i1", "bessel_j1", "i1e"])
def test_derivatives_of_quotients_where_the_series_ends(name: str) -> None:
    f = getattr(treadle.special, name)
    x = leaf([-2.0, -0.5001, -0.4999, -0.15001, -0.14999, 1e-3, 0.14999, 0.15001, 0.4999, 0.5001])
    assert gradcheck(f, (x,), atol=1e-8, rtol=1e-7)
    assert gradgradcheck(f, (x,), atol=1e-8, rtol=1e-7)


# ---- infinities, NaN, ends ----


def test_logaddexp2_of_infinity() -> None:
    x, y = leaf([INF, -INF, 3.0]), leaf([1.0, 1.0, 1.0])
    value = treadle.logaddexp2(x, y)
    assert_grad(value, x, [1, 0, 0.8])
    assert_grad(value, y, [0, 1, 0.2])


@pytest.mark.parametrize("reduce", ["max", "min", "amax", "amin"])
def test_the_extremum_is_the_nan(reduce: str) -> None:
    x = leaf([1.0, NAN, 3.0])
    assert_grad(getattr(x, reduce)(), x, [0, 1, 0])


def test_many_equal_extrema_in_half_precision() -> None:
    x = treadle.ones(100000, dtype=treadle.float16, requires_grad=True)
    (grad,) = treadle.autograd.grad(x.amax() * 1000, x)
    np.testing.assert_allclose(grad[:3].numpy(), 0.01, rtol=1e-3)


def test_logit_at_its_ends() -> None:
    x = leaf([0.0, 1.0, 0.5, -0.1, 1.1])
    assert_grad(treadle.logit(x), x, [INF, INF, 4, NAN, NAN])
    assert_grad(treadle.logit(x, 0.1), x, [0, 0, 4, 0, 0])
    inner = leaf([0.2, 0.7])
    assert gradgradcheck(treadle.logit, (inner,))


@pytest.mark.parametrize("dtype", [treadle.float64, treadle.complex128])
@pytest.mark.parametrize("shape, dim", [((3, 7), 0), ((7, 3), 1), ((11,), None)])
def test_std_of_equal_numbers_has_no_slope(dtype: treadle.dtype, shape: Any, dim: Any) -> None:
    number = 0.1 + 0.3j if dtype.is_complex else 0.1
    x = treadle.full(shape, number, dtype=dtype, requires_grad=True)
    assert not treadle.var(x, dim).any()
    (grad,) = treadle.autograd.grad(treadle.std(x, dim).sum(), x)
    assert not grad.any()


def test_statistics_of_group_norm_have_gradients() -> None:
    treadle.manual_seed(0)
    x = treadle.randn(2, 4, 3, dtype=treadle.float64, requires_grad=True)
    w = treadle.randn(4, dtype=treadle.float64, requires_grad=True)
    b = treadle.randn(4, dtype=treadle.float64, requires_grad=True)
    f = lambda x, w, b: treadle.native_group_norm(x, w, b, 2, 4, 3, 2, 1e-5)
    assert all(t.requires_grad for t in f(x, w, b))
    assert gradcheck(f, (x, w, b))
    assert gradgradcheck(f, (x, w, b))


def test_the_direction_of_zero_in_forward_mode() -> None:
    x = treadle.tensor([0j, 3 + 4j], dtype=treadle.complex128)
    found = treadle.func.jvp(treadle.sgn, (x,), (treadle.ones_like(x),))[1]
    np.testing.assert_allclose(found.numpy(), [0, (1 - (3 + 4j) / 5 * 3 / 5) / 5])
