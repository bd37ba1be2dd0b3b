"""Products, transpositions and sums of sparse matrices at sizes that take each way through the
kernels: short and long rows, narrow and very wide matrices, values of every size, few and many
entries. All are compared with sums that NumPy makes entry by entry.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Tuple

import numpy as np
import pytest

import treadle
from treadle.testing import assert_close

# Rows, columns, entries.
SHAPES = (
    (1, 1, 1),
    (7, 5, 9),
    (40, 300, 900),
    (3, 2000, 5000),
    (900, 700, 20_000),
    (700, 9000, 5000),
    (5, 9, 0),
)


def _entries(n: int, m: int, count: int, seed: int = 0) -> Tuple[Any, Any, Any]:
    """Rows, columns and values, in order and without repetition."""
    rng = np.random.default_rng(seed)
    keys = np.unique(rng.integers(0, n * m, count))
    return keys // m, keys % m, rng.normal(size=len(keys))


def _csr(rows: Any, columns: Any, values: Any, size: Tuple[int, int]) -> treadle.Tensor:
    starts = np.searchsorted(rows, np.arange(size[0] + 1))
    return treadle.sparse_csr_tensor(
        treadle.tensor(starts), treadle.tensor(columns), treadle.tensor(values), size
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.complex64, np.int32])
def test_a_product_with_a_vector(shape: Tuple[int, int, int], dtype: Any) -> None:
    n, m, count = shape
    rows, columns, values = _entries(n, m, count)
    values = (10 * values).astype(dtype)
    x = np.arange(m).astype(dtype) / dtype(8) if dtype != np.int32 else np.arange(m, dtype=dtype)
    expected = np.zeros(n, complex if dtype == np.complex64 else float)
    np.add.at(expected, rows, values.astype(expected.dtype) * x[columns].astype(expected.dtype))
    found = _csr(rows, columns, values, (n, m)) @ treadle.tensor(x)
    size = max(1.0, float(np.abs(expected).max(initial=0)))
    bound = {np.float64: 1e-12, np.float16: 2e-3}.get(dtype, 1e-5)
    assert_close(found, treadle.tensor(expected).to(found.dtype), atol=bound * size, rtol=0)


def test_a_row_of_a_product_keeps_the_digits_of_many_terms() -> None:
    m = 1_000_000
    matrix = _csr(np.zeros(m, int), np.arange(m), np.full(m, 0.1, np.float32), (1, m))
    sum_of_terms = (matrix @ treadle.ones(m))[0]
    assert abs(float(sum_of_terms) / (m * float(np.float32(0.1))) - 1) < 1e-6


def _repeated(call: Any, threads: Tuple[int, ...] = (1, 2, 3)) -> Any:
    """The results of a call with so many threads, as NumPy arrays."""
    before = treadle.get_num_threads()
    try:
        for count in threads:
            treadle.set_num_threads(count)
            yield call().numpy()
    finally:
        treadle.set_num_threads(before)


@pytest.mark.parametrize("width", [1, 3, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_rows_with_most_of_the_entries(width: int, dtype: Any) -> None:
    """Long rows are split. Their parts are the same at any number of threads."""
    n, m = 60, 600_000 // max(1, width // 4)
    rng = np.random.default_rng(0)
    counts = np.zeros(n, int)
    counts[[0, 17, 18, n - 1]] = m, m // 2, 5, m
    rows = np.repeat(np.arange(n), counts)
    columns = np.concatenate([np.sort(rng.choice(m, c, replace=False)) for c in counts])
    matrix = _csr(rows, columns, rng.normal(size=len(rows)).astype(dtype), (n, m))
    dense = treadle.tensor(rng.normal(size=(m, width)).astype(dtype))
    first, *others = _repeated(lambda: matrix @ (dense[:, 0] if width == 1 else dense))
    assert all(np.array_equal(first, other) for other in others)
    terms = matrix.values().numpy().astype(float)[:, None] * dense.numpy().astype(float)[columns]
    for r in range(n):
        expected, scale = terms[rows == r].sum(0), np.sqrt((terms[rows == r] ** 2).sum(0))
        bound = {np.float64: 1e-13, np.float32: 1e-6, np.float16: 2e-3}[dtype]
        assert (np.abs(first[r] - expected) <= bound * np.maximum(scale, np.abs(expected))).all()


@pytest.mark.parametrize(
    ("m", "count"),
    [(64, 300), (65, 300), (5000, 300), (5000, 20), (2**40, 300)],
    ids=["one group", "two groups", "wide", "few in wide rows", "wider than memory"],
)
def test_products_of_sparse_matrices(m: int, count: int) -> None:
    n, k = 30, 20
    a = _entries(n, k, 150)
    rows, columns, values = _entries(k, min(m, 700), count, seed=1)
    columns = columns * (m // 700 or 1)  # far apart where there is room
    product = _csr(*a, (n, k)) @ _csr(rows, columns, values, (k, m))
    assert product.shape == (n, m) and product.layout is treadle.sparse_csr
    sums: dict = {}
    for r, i, x in zip(*a):
        for c, y in zip(columns[rows == i], values[rows == i]):
            sums[r, c] = sums.get((r, c), 0) + x * y
    coo = product.to_sparse_coo()
    assert list(map(tuple, coo.indices().t().tolist())) == sorted(sums)
    assert_close(coo.values(), treadle.tensor([sums[at] for at in sorted(sums)]))


def test_a_product_whose_rows_are_dense_or_empty() -> None:
    full = np.indices((3, 200)).reshape(2, -1)
    rng = np.random.default_rng(0)
    a = _csr(*full, rng.normal(size=600), (3, 200))
    b = _csr(*_entries(200, 500, 30_000, seed=2), (200, 500))
    none = _csr(*_entries(500, 4, 0), (500, 4))
    assert_close((a @ b).to_dense(), a.to_dense() @ b.to_dense())
    assert (b @ none)._nnz() == 0 and (a @ b @ none).shape == (3, 4)


def test_a_product_of_sparse_matrices_has_the_same_bits_with_more_threads() -> None:
    """Pieces of the product have some rows with many terms, and many rows with few."""
    n = 1500
    rows, columns, values = _entries(n, n, 60_000)
    rows[:20_000] = rows[:20_000] // 50
    keys, at = np.unique(rows * n + columns, return_index=True)
    a = _csr(keys // n, keys % n, values[at].astype(np.float32), (n, n))
    first, *others = _repeated(lambda: (a @ a).to_dense())
    assert all(np.array_equal(first, other) for other in others)
    assert_close(treadle.tensor(first), a.to_dense() @ a.to_dense(), atol=1e-4, rtol=0)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int16, np.float32, np.float64, np.complex128], ids=str
)
def test_transpositions_move_values_of_each_size(shape: Tuple[int, int, int], dtype: Any) -> None:
    n, m, count = shape
    rows, columns, values = _entries(n, m, count)
    made = _csr(rows, columns, (100 * values).astype(dtype), (n, m)).to_sparse_csc()
    order = np.lexsort((rows, columns))
    assert made.ccol_indices().tolist() == [int((columns < c).sum()) for c in range(m + 1)]
    assert np.array_equal(made.row_indices().numpy(), rows[order])
    assert np.array_equal(made.values().numpy(), (100 * values).astype(dtype)[order])
    assert_close(made.to_sparse_csr().values(), treadle.tensor((100 * values).astype(dtype)))


def test_transpositions_move_values_with_dimensions_of_their_own() -> None:
    rows, columns, _ = _entries(6, 5, 12)
    values = np.random.default_rng(0).normal(size=(len(rows), 3, 2))
    starts = treadle.tensor(np.searchsorted(rows, np.arange(7)))
    made = treadle.sparse_csr_tensor(
        starts, treadle.tensor(columns), treadle.tensor(values), (6, 5, 3, 2)
    )
    assert_close(made.to_sparse_csc().to_dense(), made.to_dense())


def test_a_transposition_has_gradients_of_two_orders() -> None:
    rows, columns, values = _entries(6, 5, 12)

    def turned(v: treadle.Tensor) -> treadle.Tensor:
        starts = treadle.tensor(np.searchsorted(rows, np.arange(7)))
        made = treadle.sparse_csr_tensor(starts, treadle.tensor(columns), v, (6, 5))
        return made.to_sparse_csc().values().exp()

    leaf = treadle.tensor(values, requires_grad=True)
    assert treadle.autograd.gradcheck(turned, (leaf,))
    assert treadle.autograd.gradgradcheck(turned, (leaf,))


@pytest.mark.parametrize(
    "size",
    [(3,), (100, 100), (2**31, 2**31), (7, 1, 2**20, 5)],
    ids=["vector", "matrix", "keys of 62 bits", "four dimensions"],
)
@pytest.mark.parametrize("count", [1, 30, 4000])
def test_entries_in_order_and_added_up(size: Tuple[int, ...], count: int) -> None:
    rng = np.random.default_rng(count)
    few = rng.integers(0, size, (max(1, count // 2), len(size)))
    indices = few[rng.integers(0, len(few), count)]
    values = rng.normal(size=count)
    made = treadle.sparse_coo_tensor(treadle.tensor(indices.T), treadle.tensor(values), size)
    made = made.coalesce()
    different, group = np.unique(indices, axis=0, return_inverse=True)
    sums = np.zeros(len(different))
    np.add.at(sums, group.reshape(-1), values)
    assert np.array_equal(made.indices().numpy(), different.T)
    assert_close(made.values(), treadle.tensor(sums))


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s @ treadle.ones(700, dtype=treadle.float64),
        lambda s: s @ treadle.ones(700, 3, dtype=treadle.float64),
        lambda s: s @ s.t().to_sparse_csr(),
        lambda s: s.to_sparse_csc(),
    ],
    ids=["by a vector", "by a matrix", "by a sparse matrix", "transposed"],
)
@pytest.mark.parametrize("index", [-1, 700, -(2**63), 2**63 - 1, 2**32])
def test_a_column_that_is_changed_later_is_refused(call: Any, index: int) -> None:
    s = _csr(*_entries(900, 700, 20_000), (900, 700))
    s.col_indices()[12_345] = index
    with pytest.raises(RuntimeError) as error:
        call(s)
    assert str(error.value).endswith(f"expected indices from 0 to 699, got {index}")


@pytest.mark.parametrize("start", [-1, 30_000, 2**62])
def test_an_offset_that_is_changed_later_is_refused(start: int) -> None:
    s = _csr(*_entries(900, 700, 20_000), (900, 700))
    s.crow_indices()[450] = start
    for call in (
        lambda: s @ treadle.ones(700, dtype=treadle.float64),
        lambda: s.to_sparse_csc(),
        lambda: s @ treadle.eye(700, dtype=treadle.float64).to_sparse_csr(),
    ):
        with pytest.raises(RuntimeError, match="expected offsets of rows that do not fall"):
            call()


@pytest.mark.parametrize(
    ("entry", "index"), [(0, -1), (0, -(2**63)), (2, 0), (2, 3), (3, 2**40)], ids=str
)
def test_a_row_that_is_changed_later_is_refused(entry: int, index: int) -> None:
    indices = treadle.tensor([[0, 1, 1, 2], [0, 0, 2, 1]])
    s = treadle.sparse_coo_tensor(indices, treadle.ones(4), (3, 3), is_coalesced=True)
    s.indices()[0, entry] = index
    with pytest.raises(RuntimeError) as error:
        s.to_sparse_csr()
    assert str(error.value) == (
        f"to_sparse_csr: expected rows in order from 0 to 2, got {index} at entry {entry}"
    )
