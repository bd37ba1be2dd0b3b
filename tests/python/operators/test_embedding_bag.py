"""embedding_bag over tables of any width, whose rows may lie apart, in bags of any length."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

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
    value, _, size, rows = treadle.embedding_bag(weight, indices, offsets, mode=2, padding_idx=0)
    assert size.tolist() == [1, 0, 3]
    assert value[:2].tolist() == [[3.0, 5.0], [0.0, 0.0]] and value[2, 1].item() == 7.0
    assert rows.tolist() == [[1, 1], [-1, -1], [3, 3]]
