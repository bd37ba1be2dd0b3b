"""embedding_bag over tables of any width, whose rows may lie apart, in bags of any length."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle
import treadle.nn.functional as F


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("width", [1, 3, 4, 13, 64, 71, 150])
def test_sums_and_means(width: int, strided: bool, dtype: str) -> None:
    rng = np.random.default_rng(width)
    whole = treadle.tensor(rng.standard_normal((90, 2 * width)), dtype=getattr(treadle, dtype))
    weight = whole[:, ::2] if strided else whole[:, :width]
    table = weight.double().numpy()
    bags = [0, 1, 16, 17, 40, 5, 0]
    offsets = np.cumsum([0, *bags[:-1]])
    indices = rng.integers(0, 90, sum(bags))
    factors = treadle.tensor(rng.standard_normal(sum(bags)), dtype=weight.dtype)
    for mode, weighted, padding in [("sum", True, 7), ("sum", False, None), ("mean", False, 7)]:
        got = F.embedding_bag(
            treadle.tensor(indices),
            weight,
            treadle.tensor(offsets),
            mode=mode,
            per_sample_weights=factors if weighted else None,
            padding_idx=padding,
        )
        by = factors.double().numpy() if weighted else np.ones(sum(bags))
        for bag, (first, count) in enumerate(zip(offsets, bags)):
            named = indices[first : first + count]
            kept = named != padding
            rows = table[named] * by[first : first + count, None]
            expected = rows[kept].sum(0) / (max(1, kept.sum()) if mode == "mean" else 1)
            tolerance = {"float32": 1e-5, "float64": 1e-13, "bfloat16": 2e-2}[dtype]
            scale = tolerance * max(1.0, np.abs(rows).sum(0).max(initial=0))
            np.testing.assert_allclose(got[bag].double().numpy(), expected, atol=scale, rtol=0)


def test_a_sum_of_many_rows_is_exact() -> None:
    weight = treadle.ones(3, 20)
    weight[0] = 1e-3
    indices = treadle.zeros(100_000, dtype=treadle.int64)
    got = F.embedding_bag(indices, weight, treadle.tensor([0]), mode="sum")
    np.testing.assert_allclose(got.numpy(), 100_000 * np.float32(1e-3), rtol=1e-6)


def test_the_largest_elements_are_those_of_the_first_rows_that_have_them() -> None:
    weight = treadle.tensor([[1.0, 5.0], [3.0, 5.0], [float("nan"), 2.0], [float("nan"), 7.0]])
    indices, offsets = treadle.tensor([0, 1, 1, 2, 3, 0]), treadle.tensor([0, 2, 2])
    value, _, size, rows = treadle.embedding_bag(
        weight, indices, offsets, False, 2, False, None, False, padding_idx=0
    )
    assert size.tolist() == [1, 0, 3]
    assert value[:2].tolist() == [[3.0, 5.0], [0.0, 0.0]] and value[2, 1].item() == 7.0
    assert rows.tolist() == [[1, 1], [-1, -1], [3, 3]]


@pytest.mark.parametrize("padding", [None, 2, -1])
@pytest.mark.parametrize("mode", ["sum", "mean", "weighted"])
def test_a_sparse_gradient_is_the_strided_one(mode: str, padding: Any) -> None:
    rng = np.random.default_rng(5)
    indices = treadle.tensor(rng.integers(0, 7, 30))
    offsets = treadle.tensor([0, 4, 4, 17])
    found = []
    for sparse in (True, False):
        weight = treadle.arange(21.0).reshape(7, 3).requires_grad_()
        factors = treadle.linspace(0, 1, 30).requires_grad_() if mode == "weighted" else None
        bags = F.embedding_bag(
            indices,
            weight,
            offsets,
            mode="mean" if mode == "mean" else "sum",
            sparse=sparse,
            per_sample_weights=factors,
            padding_idx=padding,
        )
        (bags * treadle.arange(12.0).reshape(4, 3)).sum().backward()
        found.append(weight.grad)
        if factors is not None:
            found.append(factors.grad)
    half = len(found) // 2
    assert found[0].layout == treadle.sparse_coo and found[half].layout == treadle.strided
    assert found[0].shape == (7, 3) and (found[0].sparse_dim(), found[0].dense_dim()) == (1, 1)
    named = [i for i in indices.tolist() if padding is None or i != padding % 7]
    assert found[0]._indices().tolist() == [named]
    treadle.testing.assert_close(found[0].to_dense(), found[half])
    if mode == "weighted":
        treadle.testing.assert_close(found[1], found[3])


def test_a_sparse_gradient_of_no_bags_is_empty() -> None:
    weight = treadle.ones(4, 2, requires_grad=True)
    none = treadle.tensor([], dtype=treadle.int64)
    for indices in (none, treadle.tensor([1, 2])):
        weight.grad = None
        F.embedding_bag(indices, weight, none, mode="sum", sparse=True).sum().backward()
        assert weight.grad._nnz() == 0 and weight.grad.shape == (4, 2)


def test_sparse_gradients_that_are_refused() -> None:
    weight = treadle.ones(4, 2, requires_grad=True)
    indices, offsets = treadle.tensor([1, 2]), treadle.tensor([0])
    with pytest.raises(ValueError) as error:
        F.embedding_bag(indices, weight, offsets, mode="max", sparse=True)
    assert str(error.value) == "embedding_bag: expected sparse = False for mode 2 (max), got True"
    bags = F.embedding_bag(indices, weight, offsets, sparse=True, scale_grad_by_freq=True)
    with pytest.raises(NotImplementedError) as missing:
        bags.sum().backward()
    assert str(missing.value) == (
        "embedding: expected scale_grad_by_freq = False for a sparse gradient, got True"
    )


def test_a_sparse_gradient_can_be_differentiated_again() -> None:
    weight = treadle.arange(6.0, dtype=treadle.float64).reshape(3, 2).requires_grad_()
    bags = F.embedding_bag(
        treadle.tensor([0, 2, 2]), weight, treadle.tensor([0, 1]), mode="sum", sparse=True
    )
    (grad,) = treadle.autograd.grad((bags**3).sum(), weight, create_graph=True)
    (second,) = treadle.autograd.grad(grad.to_dense().sum(), weight)
    # Row 0 by itself; row 2 twice in one bag: 6 * bag * 2 * 2.
    expected = [[0, 6], [0, 0], [24 * 8, 24 * 10]]
    assert second.to_dense().tolist() == expected
