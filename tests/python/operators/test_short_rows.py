"""Operands with one row for all rows, or one element for each row, and scatters and sums of short
rows, beside NumPy.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import numpy as np
import pytest

import treadle

SHAPES = [(7, 3), (1, 2), (12_345, 3), (2001, 17), (2000, 49), (999, 65), (700, 196), (300, 511)]
SHAPES += [(40, 1030), (50, 2049)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.uint8, np.complex128])
def test_rows(kind: type, shape: tuple) -> None:
    rows, columns = shape
    random = np.random.default_rng(0)

    def numbers(*sizes: int) -> np.ndarray:
        return (random.random(sizes) * 15).astype(kind)

    planes, matrix, row = numbers(5, *shape), numbers(*shape), numbers(columns)
    column, columns_of_planes = numbers(rows, 1), numbers(5, rows, 1)
    for left, right in (
        (matrix, row),
        (matrix, column),
        (row, column),
        (planes, row),
        (planes, columns_of_planes),
        (planes.transpose(1, 0, 2), row),
        (planes[:, :, 1:], row[: columns - 1]),
        (planes[:, ::2], row),
    ):
        expected = left * right
        found = treadle.from_numpy(left) * treadle.from_numpy(right)
        np.testing.assert_array_equal(found.numpy(), expected)
    out = treadle.zeros(rows, 2 * columns, dtype=found.dtype)[:, ::2]
    treadle.add(treadle.from_numpy(matrix), treadle.from_numpy(row), out=out)
    np.testing.assert_array_equal(out.numpy(), matrix + row)
    if kind is np.float32:
        narrow = treadle.from_numpy(matrix).bfloat16()
        found = narrow + treadle.from_numpy(row) * 2  # of two dtypes
        np.testing.assert_array_equal(found.numpy(), narrow.float().numpy() + 2 * row)


@pytest.mark.parametrize(
    "out, index, dim",
    [
        ((700, 4), (700, 2), 1),
        ((700, 4), (600, 2), 1),
        ((40, 30, 4), (40, 30, 2), 2),
        ((40, 30, 4), (40, 20, 2), 2),
        ((300, 3, 4), (300, 2, 3), 1),
        ((5, 300, 3, 4), (5, 300, 5, 3), 2),
        ((9, 4), (20, 3), 0),
    ],
    ids=str,
)
def test_scatters(out: tuple, index: tuple, dim: int) -> None:
    random = np.random.default_rng(0)
    start = random.integers(0, 9, out).astype(np.float32)
    entries = random.integers(0, out[dim], index)
    source = random.integers(0, 9, index).astype(np.float32)
    places = list(np.indices(index))
    places[dim] = entries
    expected = start.copy()
    np.add.at(expected, tuple(places), source)
    x, e, s = (treadle.from_numpy(a) for a in (start, entries, source))
    np.testing.assert_array_equal(x.scatter_add(dim, e, s).numpy(), expected)
    np.testing.assert_array_equal(x.scatter_reduce(dim, e, s, "sum").numpy(), expected)
    apart = treadle.zeros(*out[:-1], 2 * out[-1])[..., ::2].copy_(x)  # not side by side
    np.testing.assert_array_equal(apart.scatter_add_(dim, e, s).numpy(), expected)
    one = start.copy()
    for place in zip(*(p.reshape(-1) for p in places)):
        one[place] = 5
    np.testing.assert_array_equal(x.scatter(dim, e, 5).numpy(), one)


@pytest.mark.parametrize("length", [1, 2, 3, 15, 16, 31, 50, 63, 64, 100, 511, 600])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
def test_sums_of_short_rows_of_integers(length: int, dtype: str) -> None:
    x = np.random.default_rng(length).integers(0, 100, (300, length)).astype(dtype)
    t = treadle.from_numpy(x)
    np.testing.assert_array_equal(t.sum(1).numpy(), x.sum(1, dtype=np.int64))
    np.testing.assert_array_equal(t[:, ::2].sum(1).numpy(), x[:, ::2].sum(1, dtype=np.int64))
    np.testing.assert_array_equal(t[::3].sum(1).numpy(), x[::3].sum(1, dtype=np.int64))
    np.testing.assert_array_equal(t.count_nonzero(1).numpy(), np.count_nonzero(x, axis=1))
