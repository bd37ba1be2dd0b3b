"""autograd.functional: Jacobians, Hessians and their products against formulas worked out by hand,
for one and for several tensors, with and without a graph of the result.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle
from treadle.autograd import functional as F

A = np.array([[0.3, 1.2], [2.0, -0.7], [0.1, 0.4]])
B = np.array([0.5, -1.5])


def tensor(values: Any, requires_grad: bool = False) -> treadle.Tensor:
    return treadle.tensor(values, dtype=treadle.float64, requires_grad=requires_grad)


def close(actual: treadle.Tensor, expected: Any) -> None:
    assert tuple(actual.shape) == np.shape(expected)
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-12, atol=1e-12)


def products(x: treadle.Tensor, y: treadle.Tensor) -> tuple:
    """x @ y and sum(x * y), whose Jacobians are known."""
    return x @ y, (x * y).sum()


def exponent(x: treadle.Tensor, y: treadle.Tensor) -> treadle.Tensor:
    """exp(s) with s = sum(x^2 y): gradient exp(s) ds, Hessian exp(s) (ds ds^T + dds)."""
    return (x**2 * y).sum().exp()


def exponent_hessian() -> np.ndarray:
    """The Hessian of `exponent` at (A, B), over the elements of both laid end to end."""
    n = A.size
    first = np.concatenate([(2 * A * B).ravel(), (A**2).sum(0)])
    second = np.zeros((n + 2, n + 2))
    second[:n, :n] = np.diag((2 * np.ones_like(A) * B).ravel())
    for i in range(n):
        second[i, n + i % 2] = second[n + i % 2, i] = 2 * A.ravel()[i]
    return np.exp((A**2 * B).sum()) * (np.outer(first, first) + second)


# ---- values ----


@pytest.mark.parametrize(
    "how", [{}, {"vectorize": True}, {"vectorize": True, "strategy": "forward-mode"}]
)
def test_jacobian(how: dict) -> None:
    close(F.jacobian(lambda x: x.exp(), tensor(B), **how), np.diag(np.exp(B)))
    close(F.jacobian(lambda x: x.sum(), tensor(A), **how), np.ones((3, 2)))
    (xx, xy), (sx, sy) = F.jacobian(products, (tensor(A), tensor(B)), **how)
    close(xx, np.einsum("ik,j->ikj", np.eye(3), B))
    close(xy, A)
    close(sx, np.tile(B, (3, 1)))
    close(sy, A.sum(0))
    (only,) = F.jacobian(lambda x: x * 2, (tensor(B),), **how)
    close(only, 2 * np.eye(2))
    empty = F.jacobian(lambda x: x[:0] * 1, tensor(B), **how)
    assert tuple(empty.shape) == (0, 2)


@pytest.mark.parametrize(
    "how", [{}, {"vectorize": True}, {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}]
)
def test_hessian(how: dict) -> None:
    close(F.hessian(lambda x: (x**3).sum(), tensor(B), **how), np.diag(6 * B))
    whole = exponent_hessian()
    (xx, xy), (yx, yy) = F.hessian(exponent, (tensor(A), tensor(B)), **how)
    close(xx, whole[:6, :6].reshape(3, 2, 3, 2))
    close(xy, whole[:6, 6:].reshape(3, 2, 2))
    close(yx, whole[6:, :6].reshape(2, 3, 2))
    close(yy, whole[6:, 6:])
    close(F.hessian(lambda x: x.sum(), tensor(B), **how), np.zeros((2, 2)))


def test_products_with_vectors() -> None:
    x, y, v, w = tensor(A), tensor(B), tensor(A[::-1].copy()), tensor(B[::-1].copy())
    V, W = v.numpy(), w.numpy()
    out, (gx, gy) = F.vjp(products, (x, y), (tensor([1, 2, 3]), tensor(4)))
    close(out[0], A @ B)
    close(gx, np.outer([1, 2, 3], B) + 4 * np.tile(B, (3, 1)))
    close(gy, A.T @ [1, 2, 3] + 4 * A.sum(0))
    out, (u, s) = F.jvp(products, (x, y), (v, w))
    close(out[1], (A * B).sum())
    close(u, V @ B + A @ W)
    close(s, (V * B).sum() + (A * W).sum())
    expected = exponent_hessian() @ np.concatenate([V.ravel(), W])
    for product in (F.vhp, F.hvp):
        out, (hx, hy) = product(exponent, (x, y), (v, w))
        close(out, np.exp((A**2 * B).sum()))
        close(hx, expected[:6].reshape(3, 2))
        close(hy, expected[6:])


def test_a_vector_may_be_left_out_beside_one_element() -> None:
    x = tensor([2.0])
    close(F.vjp(lambda x: (x**2).sum(), x)[1], [4.0])
    close(F.jvp(lambda x: x**2, x)[1], [4.0])
    for product in (F.vhp, F.hvp):
        close(product(lambda x: (x**3).sum(), x)[1], [12.0])


def test_complex_functions() -> None:
    z = treadle.tensor([1 + 2j, 3 - 1j], dtype=treadle.complex128)
    close(F.vjp(lambda z: z * z, z, treadle.ones_like(z))[1], 2 * np.conj(z.numpy()))


def test_batched_gradients_are_those_of_each_entry() -> None:
    x = tensor(B, requires_grad=True)
    weights = tensor([[1, 0], [0, 1], [2, 3]])
    (g,) = treadle.autograd.grad(x**2, x, weights, is_grads_batched=True)
    close(g, weights.numpy() * 2 * B)
    with pytest.raises(RuntimeError, match="batch dimension"):
        treadle.autograd.grad((x**2).sum(), x, is_grads_batched=True)


# ---- graphs ----


def test_results_have_a_graph_only_when_asked() -> None:
    x = tensor(B, requires_grad=True)
    assert not F.jacobian(lambda x: x**2, x).requires_grad
    assert not any(t.requires_grad for t in F.vjp(lambda x: (x**2).sum(), x))
    jacobian = F.jacobian(lambda x: x**3, x, create_graph=True)
    (g,) = treadle.autograd.grad(jacobian.sum(), x)
    close(g, 6 * B)
    _, u = F.jvp(lambda x: x**3, x, tensor([1, 1]), create_graph=True)
    (g,) = treadle.autograd.grad(u.sum(), x)
    close(g, 6 * B)
    _, u = F.hvp(lambda x: (x**4).sum(), x, tensor([1, 1]), create_graph=True)
    (g,) = treadle.autograd.grad(u.sum(), x)
    close(g, 24 * B)
    (g,) = treadle.autograd.grad(F.hessian(lambda x: (x**4).sum(), x, create_graph=True).sum(), x)
    close(g, 24 * B)


def test_a_tensor_that_the_function_captures_is_a_constant() -> None:
    x = tensor(B, requires_grad=True)
    close(F.jacobian(lambda y: x * y, x), np.diag(B))
    with treadle.no_grad():
        close(F.jacobian(lambda y: y * y, x), np.diag(2 * B))
    assert x.grad is None


# ---- strict ----


@pytest.mark.parametrize("create_graph", [False, True])
def test_strict_refuses_what_is_independent(create_graph: bool) -> None:
    x, y = tensor(A, requires_grad=True), tensor(B, requires_grad=True)
    how: dict = {"create_graph": create_graph}

    def one_each(x: treadle.Tensor, y: treadle.Tensor) -> tuple:
        return (x**2).sum(), y**2

    calls = [
        lambda **k: F.jacobian(one_each, (x, y), **k),
        lambda **k: F.jacobian(lambda x: treadle.ones(3), x, **k),
        lambda **k: F.vjp(lambda x, y: x.sum(), (x, y), **k),
        lambda **k: F.jvp(lambda x, y: (x**2).sum(), (x, y), (x, y), **k),
        lambda **k: F.vhp(lambda x: x.sum(), x, x, **k),
        lambda **k: F.hvp(lambda x: x.sum(), x, x, **k),
        lambda **k: F.hessian(lambda x, y: (x**2).sum(), (x, y), **k),
    ]
    for call in calls:
        call(**how)
        with pytest.raises(RuntimeError, match="strict"):
            call(strict=True, **how)
    F.jacobian(lambda x: x**2, x, strict=True, **how)


def test_independent_inputs_have_zero_derivatives() -> None:
    x, y = tensor(A), tensor(B)
    (jx, jy) = F.jacobian(lambda x, y: x.sum(), (x, y))
    close(jx, np.ones((3, 2)))
    close(jy, np.zeros(2))
    close(F.vjp(lambda x: treadle.ones(3), x, treadle.ones(3))[1], np.zeros((3, 2)))


# ---- what does not fit ----


def test_errors() -> None:
    x, y = tensor(A), tensor(B)
    with pytest.raises(TypeError, match="jacobian: expected inputs .* got list"):
        F.jacobian(lambda x: x, [x])
    with pytest.raises(TypeError, match="output .* got float at index 1"):
        F.vjp(lambda x: (x, 1.0), x)
    with pytest.raises(RuntimeError, match="vjp: expected a vector v"):
        F.vjp(lambda x: x, x)
    with pytest.raises(RuntimeError, match="jvp: expected a vector v"):
        F.jvp(lambda x: x.sum(), x)
    with pytest.raises(RuntimeError, match=r"size \(3, 2\) of the output, got \(2,\)"):
        F.vjp(lambda x: x, x, y)
    with pytest.raises(RuntimeError, match="tuple of 2 Tensors, got 1"):
        F.vjp(products, (x, y), x)
    with pytest.raises(RuntimeError, match="single Tensor, got 2"):
        F.vjp(lambda x: x, x, (x, x))
    for product in (F.vhp, F.hvp):
        with pytest.raises(RuntimeError, match=r"single element, got shape \(3, 2\)"):
            product(lambda x: x, x, x)
        with pytest.raises(RuntimeError, match="got a tuple"):
            product(products, (x, y), (x, y))
    with pytest.raises(AssertionError, match="sideways"):
        F.jacobian(lambda x: x, x, strategy="sideways")
    forward: dict = {"strategy": "forward-mode"}
    with pytest.raises(NotImplementedError, match="vectorize=True"):
        F.jacobian(lambda x: x, x, **forward)
    with pytest.raises(NotImplementedError, match="create_graph=False"):
        F.jacobian(lambda x: x, x, create_graph=True, vectorize=True, **forward)
    with pytest.raises(RuntimeError, match="strict=False"):
        F.jacobian(lambda x: x, x, strict=True, vectorize=True, **forward)
    with pytest.raises(RuntimeError, match="vectorize=False"):
        F.jacobian(lambda x: x, x, strict=True, vectorize=True)


def test_products_are_connected_to_the_vector_where_nothing_is_recorded() -> None:
    x = treadle.rand(4, 4, requires_grad=True)
    v = treadle.ones(4, requires_grad=True)
    with treadle.no_grad():
        _, product = treadle.autograd.functional.vjp(lambda x: x.sum(1), x, v, create_graph=True)
    product.sum().backward()
    assert v.grad.tolist() == [4] * 4
