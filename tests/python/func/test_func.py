"""treadle.func: gradients, Jacobians and products with them against formulas, nested in each other,
and what of the results has history.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle
from treadle import func
from treadle.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp

A = np.array([0.5, -1.5, 2.0])


def tensor(values: Any, requires_grad: bool = False) -> treadle.Tensor:
    return treadle.tensor(values, dtype=treadle.float64, requires_grad=requires_grad)


def close(actual: treadle.Tensor, expected: Any) -> None:
    assert tuple(actual.shape) == np.shape(expected)
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-12, atol=1e-12)


def cubes(x: treadle.Tensor) -> treadle.Tensor:
    return (x**3).sum()


# ---- gradients ----


def test_grad() -> None:
    close(grad(cubes)(tensor(A)), 3 * A**2)
    x, y = tensor(A), tensor(A[::-1].copy())

    def product(x: treadle.Tensor, y: treadle.Tensor, scale: float = 1) -> treadle.Tensor:
        return (x * y).sum() * scale

    close(grad(product, argnums=1)(x, y), A)
    close(grad(product, argnums=-1)(x, y, scale=3), 3 * A)
    gx, gy = grad(product, argnums=(0, 1))(x, y)
    close(gx, A[::-1])
    close(gy, A)
    assert grad(cubes).__name__ == "cubes"


def test_arguments_may_be_trees() -> None:
    params = {"w": tensor(A), "b": [tensor(1.0), tensor(2.0)]}
    g = grad(lambda p: (p["w"] * p["b"][0]).sum())(params)
    close(g["w"], np.ones(3))
    close(g["b"][0], A.sum())
    close(g["b"][1], 0.0)


def test_values_and_more_come_along() -> None:
    x = tensor(A)
    g, value = grad_and_value(cubes)(x)
    close(g, 3 * A**2)
    close(value, (A**3).sum())
    g, aux = grad(lambda x: (cubes(x), x * 2), has_aux=True)(x)
    close(aux, 2 * A)
    g, (value, aux) = grad_and_value(lambda x: (cubes(x), {"twice": x * 2}), has_aux=True)(x)
    close(aux["twice"], 2 * A)
    assert not any(t.requires_grad for t in (g, value, aux["twice"]))


def test_gradients_nest() -> None:
    two = tensor(2.0)
    close(grad(grad(lambda x: x**3))(two), 12.0)
    close(grad(grad(grad(lambda x: x**4)))(two), 48.0)
    close(grad(lambda y: grad(lambda x: x * y)(tensor(1.0)))(tensor(5.0)), 1.0)
    close(grad(lambda x: grad(lambda y: x**2 * y)(tensor(1.0)))(tensor(3.0)), 6.0)
    # A value of the inner level that does not depend on the outer one is a constant there.
    close(grad(lambda x: x * grad(lambda y: y**2)(tensor(3.0)))(two), 6.0)


def test_no_grad_inside_counts_and_outside_does_not() -> None:
    def partly(x: treadle.Tensor) -> treadle.Tensor:
        with treadle.no_grad():
            constant = x**2
        return (x - constant).sum()

    close(grad(partly)(tensor(A)), np.ones(3))
    close(grad(lambda x: (x.detach() * 2).sum())(tensor(A)), np.zeros(3))
    x = tensor(A, requires_grad=True)
    with treadle.no_grad():
        g = grad(cubes)(x)
    close(g, 3 * A**2)
    assert not g.requires_grad and x.grad is None


# ---- history ----


def test_results_have_history_only_through_what_requires_grad() -> None:
    x, w = tensor(A), tensor(A, requires_grad=True)
    assert not grad(cubes)(x).requires_grad
    g, value = grad_and_value(lambda x: (x * w).sum())(x)
    assert g.requires_grad and value.requires_grad
    (through,) = treadle.autograd.grad(g.sum(), w)
    close(through, np.ones(3))
    g = grad(cubes)(w)
    g.sum().backward()
    close(w.grad, 6 * A)
    out, pull = vjp(lambda x: x * 2, x)
    assert not out.requires_grad and not pull(x)[0].requires_grad
    (g,) = pull(w)
    assert g.requires_grad
    assert not jacrev(lambda x: x**2)(x).requires_grad
    assert not jacfwd(lambda x: x**2)(x).requires_grad
    jacrev(lambda x: x**2 * w)(x).sum().backward()
    w.grad = None
    jacrev(lambda x: x**3)(w).sum().backward()
    close(w.grad, 6 * A)
    w.grad = None
    jacfwd(lambda x: x**3)(w).sum().backward()
    close(w.grad, 6 * A)


# ---- products ----


def test_vjp() -> None:
    x, v = tensor(A), tensor([1, 2, 3])
    out, pull = vjp(lambda x: (x.sin(), x.sum()), x)
    close(out[0], np.sin(A))
    (g,) = pull((v, tensor(10.0)))
    close(g, np.cos(A) * [1, 2, 3] + 10)
    out, pull = vjp(lambda x, y: x * y, x, v)
    gx, gy = pull(tensor([1, 1, 1]))
    close(gx, [1, 2, 3])
    close(gy, A)
    out, pull, aux = vjp(lambda x: (x * 2, x * 3), x, has_aux=True)
    close(aux, 3 * A)
    close(vjp(lambda x: (x * 2, treadle.ones(2)), x)[1]((v, treadle.ones(2)))[0], [2, 4, 6])
    second = grad(lambda x: vjp(lambda y: y**3, x)[1](v)[0].sum())
    close(second(x), 6 * A * [1, 2, 3])


def test_jvp() -> None:
    x, v = tensor(A), tensor([1, 2, 3])
    out, u = jvp(treadle.sin, (x,), (v,))
    close(out, np.sin(A))
    close(u, np.cos(A) * [1, 2, 3])
    out, u = jvp(lambda x, y: {"p": x * y, "s": x.sum()}, (x, v), (v, x))
    close(u["p"], A**2 + np.array([1, 4, 9]))
    close(u["s"], 6.0)
    out, u, aux = jvp(lambda x: (x * 2, x * 3), (x,), (v,), has_aux=True)
    close(aux, 3 * A)
    close(jvp(lambda x: treadle.ones(2), (x,), (v,))[1], np.zeros(2))
    with pytest.raises(RuntimeError, match="strict=True"):
        jvp(lambda x: treadle.ones(2), (x,), (v,), strict=True)
    close(grad(lambda x: jvp(lambda y: y**3, (x,), (v,))[1].sum())(x), 6 * A * [1, 2, 3])


def test_linearize() -> None:
    out, derivative = linearize(treadle.exp, tensor(A))
    close(out, np.exp(A))
    for v in ([1, 0, 0], [1, 2, 3]):
        close(derivative(tensor(v)), np.exp(A) * v)


# ---- Jacobians ----


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobians(jacobian: Any) -> None:
    x, y = tensor(A), tensor([1, 2, 3])
    close(jacobian(treadle.sin)(x), np.diag(np.cos(A)))
    close(jacobian(lambda x: x.outer(x)[:2])(x).sum(), 2 * A.sum() + 3 * A[:2].sum())
    tree = jacobian(lambda x, y: (x * y.sum(), {"s": x.sum()}), argnums=(0, 1))(x, y)
    close(tree[0][0], 6 * np.eye(3))
    close(tree[0][1], np.outer(A, np.ones(3)))
    close(tree[1]["s"][0], np.ones(3))
    close(tree[1]["s"][1], np.zeros(3))
    found = jacobian(lambda d: d["a"] * d["b"])({"a": x, "b": y})
    close(found["a"], np.diag([1, 2, 3]))
    found, aux = jacobian(lambda x: (x * 2, x), has_aux=True)(x)
    close(found, 2 * np.eye(3))
    close(aux, A)
    assert tuple(jacobian(lambda x: x[:0])(x).shape) == (0, 3)
    assert tuple(jacobian(lambda x: x.sum())(x[:0]).shape) == (0,)


def test_hessian() -> None:
    x, y = tensor(A), tensor([1, 2, 3])
    close(hessian(cubes)(x), np.diag(6 * A))
    (xx, xy), (yx, yy) = hessian(lambda x, y: (x * x * y).sum(), argnums=(0, 1))(x, y)
    close(xx, np.diag([2, 4, 6]))
    close(xy, np.diag(2 * A))
    close(yx, np.diag(2 * A))
    close(yy, np.zeros((3, 3)))
    for nested in (jacrev(jacrev(cubes)), jacfwd(jacfwd(cubes)), jacrev(jacfwd(cubes))):
        close(nested(x), np.diag(6 * A))


# ---- what does not fit ----


def test_errors() -> None:
    x = tensor(A)
    with pytest.raises(RuntimeError, match="scalar Tensor, got one with 1 dims"):
        grad(lambda x: x)(x)
    with pytest.raises(RuntimeError, match="return a Tensor, got tuple"):
        grad(lambda x: (x.sum(),))(x)
    with pytest.raises(ValueError, match="got int"):
        grad(cubes)(3)
    with pytest.raises(RuntimeError, match="floating point"):
        grad(cubes)(treadle.tensor([1]))
    for argnums, what in (
        ([0], "list"), (2, "only 1 positional"), ((0, 0), "unique"), ((), "non-empty"), ("a", "str")
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=what):
            grad(cubes, argnums=argnums)(x)
    with pytest.raises(RuntimeError, match="has_aux"):
        grad(cubes, has_aux=True)(x)
    with pytest.raises(RuntimeError, match="aux, got unsupported type int"):
        grad(lambda x: (cubes(x), 1), has_aux=True)(x)
    _, pull = vjp(lambda x: (x, x), x)
    for wrong in (x, [x, x], (x, x[:2])):
        with pytest.raises(RuntimeError, match="vjp: expected cotangents"):
            pull(wrong)
    with pytest.raises(RuntimeError, match="only tensors, got unsupported type int"):
        vjp(lambda x: 3, x)
    with pytest.raises(RuntimeError, match="non-empty"):
        vjp(lambda x: (), x)
    for primals, tangents in ((x, x), ((x,), (x, x)), ((x,), (x[:2],)), ((x,), [x])):
        with pytest.raises(RuntimeError, match="jvp: expected"):
            jvp(treadle.sin, primals, tangents)
    with pytest.raises(ValueError, match="chunk_size"):
        jacrev(cubes, chunk_size=0)
    with pytest.raises(RuntimeError, match="in-place"):
        grad(lambda x: x.sin_().sum())(x)


def test_functionalize_and_unwrap() -> None:
    x = tensor(A)
    assert func.functionalize(cubes) is cubes and func.debug_unwrap(x) is x
    with pytest.raises(RuntimeError, match="'all'"):
        func.functionalize(cubes, remove="all")


# ---- dual numbers ----


def test_forward_mode() -> None:
    from treadle.autograd import forward_ad as fw

    x, v = tensor(A), tensor([1, 2, 3])
    with fw.dual_level():
        dual = fw.make_dual(x, v)
        assert fw.unpack_dual(dual).tangent is v
        primal, tangent = fw.unpack_dual(dual.sin() * fw.make_dual(x, x))
        close(primal, np.sin(A) * A)
        close(tangent, np.cos(A) * [1, 2, 3] * A + np.sin(A) * A)
        assert fw.unpack_dual(x * 2).tangent is None
        w = tensor(A, requires_grad=True)
        assert fw.unpack_dual(w * 2).tangent is None
        with pytest.raises(RuntimeError, match="do not nest"):
            fw.enter_dual_level()
        with pytest.raises(ValueError, match="int64"):
            fw.make_dual(treadle.tensor([1]), treadle.tensor([1]))
        with pytest.raises(RuntimeError, match=r"shape \(3,\)"):
            fw.make_dual(x, v[:2])
    assert fw.unpack_dual(dual * 2).tangent is None
    with pytest.raises(RuntimeError, match="inside dual_level"):
        fw.make_dual(x, v)
    with pytest.raises(RuntimeError, match="got none"):
        fw.exit_dual_level()
