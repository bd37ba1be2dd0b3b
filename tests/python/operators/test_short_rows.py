"""Operands with one row for all rows, or one element for each row, beside NumPy."""

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
