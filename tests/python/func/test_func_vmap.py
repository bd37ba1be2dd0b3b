"""vmap: dimensions of arguments and results, trees, random numbers, gradients in and through it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle
from treadle import vmap
from treadle.func import grad, jacrev

X = np.arange(6.0).reshape(2, 3)


def tensor(values: Any, requires_grad: bool = False) -> treadle.Tensor:
    return treadle.tensor(values, dtype=treadle.float64, requires_grad=requires_grad)


def same(actual: treadle.Tensor, expected: Any) -> None:
    assert tuple(actual.shape) == np.shape(expected)
    np.testing.assert_array_equal(actual.detach().numpy(), expected)


def test_dimensions_of_arguments() -> None:
    x, v = tensor(X), tensor([1, 10, 100])
    same(vmap(lambda r: r.sum())(x), X.sum(1))
    same(vmap(lambda r: r.sum(), in_dims=1)(x), X.sum(0))
    same(vmap(lambda r: r.sum(), in_dims=-1)(x), X.sum(0))
    same(vmap(lambda r, w: r * w, in_dims=(0, None))(x, v), X * [1, 10, 100])
    same(vmap(lambda r, w: r @ w, in_dims=(1, 0))(x, x.t()), (X**2).sum(0))
    same(vmap(lambda r, k=None: r + k)(x, k=v), X + [1, 10, 100])
    same(vmap(lambda r, n: r * n, in_dims=(0, None))(x, 2), X * 2)
    assert vmap(lambda r: r).__name__ == "<lambda>"


class Pair:
    """Two tensors with a batch of their own, which are taken apart and stacked together."""

    def __init__(self, a: treadle.Tensor, b: treadle.Tensor, batch: int) -> None:
        assert a.shape[0] == b.shape[0] == batch
        self.a, self.b, self.batch = a, b, batch

    def dim(self) -> int:
        return 1

    def size(self, dim: int) -> int:
        return self.batch

    def unbind(self, dim: int) -> list:
        return [Pair(a[None], b[None], 1) for a, b in zip(self.a, self.b)]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func is treadle.stack
        pairs = args[0]
        return cls(treadle.cat([p.a for p in pairs]), treadle.cat([p.b for p in pairs]), len(pairs))


def test_collections_that_know_their_batch() -> None:
    pairs = Pair(tensor(X), tensor([1, 10]), 2)
    same(vmap(lambda p: (p.a * p.b).sum())(pairs), (X * [[1], [10]]).sum(1))
    made = vmap(lambda p, w: Pair(p.a * w, p.b, p.batch))(pairs, tensor([2, 3]))
    assert made.batch == 2
    same(made.a, X * [[2], [3]])
    with pytest.raises(ValueError, match=r"expected -1 <= in_dim < 1 for an input of 1 dim"):
        vmap(lambda p: p.a, in_dims=1)(pairs)


def test_dimensions_of_results() -> None:
    x = tensor(X)
    same(vmap(lambda r: r * 2, out_dims=1)(x), X.T * 2)
    same(vmap(lambda r: r * 2, out_dims=-1)(x), X.T * 2)
    first, second = vmap(lambda r: (r, r * 2), out_dims=(0, 1))(x)
    same(first, X)
    same(second, X.T * 2)
    first, constant = vmap(lambda r: (r, 3), out_dims=(0, None))(x)
    assert constant == 3
    same(vmap(lambda r: treadle.ones(2), out_dims=None)(x), np.ones(2))
    same(vmap(lambda r: treadle.ones(2))(x), np.ones((2, 2)))


def test_trees() -> None:
    x, v = tensor(X), tensor([1, 10, 100])
    out = vmap(lambda d: d["a"] + d["b"], in_dims=({"a": 0, "b": None},))({"a": x, "b": v})
    same(out, X + [1, 10, 100])
    out = vmap(lambda pair: [pair[0], {"p": pair[0] * pair[1]}])((x, x))
    same(out[0], X)
    same(out[1]["p"], X**2)
    largest = vmap(lambda r: treadle.max(r, 0))(x)
    same(largest.values, X.max(1))
    assert type(largest) is type(treadle.max(x, 0))
    assert vmap(lambda r: ())(x) == ()


def test_nesting() -> None:
    a, b = tensor([1, 2]), tensor([1, 10, 100])
    table = vmap(vmap(lambda p, q: p * q, in_dims=(None, 0)), in_dims=(0, None))
    same(table(a, b), np.outer([1, 2], [1, 10, 100]))


def test_any_operator_and_any_python() -> None:
    x = tensor(X)

    def branches(r: treadle.Tensor) -> treadle.Tensor:
        return r.flip(0) if r[0].item() > 1 else r.sort(descending=True).values

    same(vmap(branches)(x), [[2, 1, 0], [5, 4, 3]])
    matrices = tensor(np.random.default_rng(0).normal(size=(4, 3, 3)))
    np.testing.assert_allclose(
        vmap(treadle.linalg.inv)(matrices).numpy(), np.linalg.inv(matrices.numpy()), rtol=1e-12
    )
    y = tensor(X)
    vmap(lambda r: r.add_(1))(y)
    same(y, X + 1)


def test_an_empty_batch() -> None:
    out = vmap(lambda r: (r.sum(), r * 2), out_dims=(0, 1))(treadle.ones(0, 3))
    assert tuple(out[0].shape) == (0,) and tuple(out[1].shape) == (3, 0)


def test_chunks_do_not_change_results() -> None:
    same(vmap(lambda r: r * 2, chunk_size=1)(tensor(X)), X * 2)


# ---- gradients ----


def test_gradients_in_it() -> None:
    rng = np.random.default_rng(0)
    w, inputs, targets = rng.normal(size=3), rng.normal(size=(5, 3)), rng.normal(size=5)

    def loss(w: treadle.Tensor, x: treadle.Tensor, t: treadle.Tensor) -> treadle.Tensor:
        return (x @ w - t) ** 2

    found = vmap(grad(loss), in_dims=(None, 0, 0))(tensor(w), tensor(inputs), tensor(targets))
    expected = 2 * (inputs @ w - targets)[:, None] * inputs
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    assert not found.requires_grad
    jacobians = vmap(jacrev(lambda r: r**2))(tensor(X))
    same(jacobians, np.stack([np.diag(2 * r) for r in X]))


def test_gradients_through_it() -> None:
    x, w = tensor(X, requires_grad=True), tensor([1, 10, 100], requires_grad=True)
    vmap(lambda r, w: (r * w).sum(), in_dims=(0, None))(x, w).sum().backward()
    same(x.grad, np.tile([1.0, 10, 100], (2, 1)))
    same(w.grad, X.sum(0))
    found = grad(lambda x: vmap(lambda r: (r**2).sum())(x).sum())(tensor(X))
    same(found, 2 * X)


# ---- random numbers ----


def test_random_numbers() -> None:
    x = tensor(X)

    def noise(r: treadle.Tensor) -> treadle.Tensor:
        return r * 0 + treadle.rand(3, dtype=treadle.float64)

    with pytest.raises(RuntimeError, match="randomness error mode"):
        vmap(noise)(x)
    treadle.manual_seed(3)
    alike = vmap(noise, randomness="same")(x)
    assert treadle.equal(alike[0], alike[1])
    following = treadle.rand(3, dtype=treadle.float64)
    treadle.manual_seed(3)
    assert treadle.equal(alike[0], treadle.rand(3, dtype=treadle.float64))
    assert treadle.equal(following, treadle.rand(3, dtype=treadle.float64))
    different = vmap(noise, randomness="different")(x)
    assert not (different[0] == different[1]).any()
    with pytest.raises(RuntimeError, match="'equal'"):
        vmap(noise, randomness="equal")(x)


# ---- what does not fit ----


def test_errors() -> None:
    x, v = tensor(X), tensor([1, 10, 100])

    def identity(r: Any, *rest: Any) -> Any:
        return r

    cases: list = [
        (vmap(identity), (), "got no inputs"),
        (vmap(identity, in_dims=None), (x,), "got NoneType"),
        (vmap(identity, in_dims="a"), (x,), "got str"),
        (vmap(identity, in_dims=(0, 0)), (x,), "structure of the inputs"),
        (vmap(identity, in_dims=(0.5,)), (x,), "ints and None, got float"),
        (vmap(identity, in_dims=(None,)), (x,), "at least one input"),
        (vmap(identity), (x, 3), "input of type int"),
        (vmap(identity, in_dims=2), (x,), "-2 <= in_dim < 2"),
        (vmap(identity), (treadle.tensor(1.0),), "0 dimensions"),
        (vmap(identity), (x, v), r"sizes \[2, 3\]"),
        (vmap(lambda r: 3), (x,), "only Tensors, got int"),
        (vmap(lambda r: None), (x,), "only Tensors, got NoneType"),
        (vmap(identity, out_dims="a"), (x,), "out_dims .* got str"),
        (vmap(identity, out_dims=(0, 0)), (x,), "structure of the outputs"),
        (vmap(identity, out_dims=(0.5,)), ((x,),), "out_dims of ints and None, got float"),
        (vmap(identity, out_dims=None), (x,), "out_dims is None"),
        (vmap(lambda r: (r,) * int(r[0] + 1)), (x,), "same structure for every sample"),
    ]
    for function, args, message in cases:
        with pytest.raises(ValueError, match=message):
            function(*args)
    with pytest.raises(IndexError, match="Dimension out of range"):
        vmap(identity, out_dims=3)(x)
    with pytest.raises(ValueError, match="chunk_size > 0"):
        vmap(identity, chunk_size=0)
