"""Systems with sparse triangular matrices, products with other sums, and other sizes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, Callable

import numpy as np
import pytest

import treadle
from treadle.testing import assert_close

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")


def in_layout(dense: Any, layout: str) -> Any:
    blocks = {"blocksize": (1, 2)} if "bs" in layout else {}
    return dense.to_sparse(layout=getattr(treadle, layout), **blocks)


def random_matrix(n: int, dtype: Any) -> Any:
    """Zeros here and there, and a diagonal of large numbers; of both triangles."""
    rng = np.random.default_rng(n)
    numbers = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.4) + 4 * np.eye(n)
    if dtype.is_complex:
        numbers = numbers * (1 + 0.5j)
    return treadle.tensor(numbers, dtype=dtype)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [treadle.float32, treadle.float64, treadle.complex64])
def test_triangular_solve_of_each_layout(layout: str, dtype: Any) -> None:
    dense = random_matrix(12, dtype)
    rights = treadle.linspace(-1, 1, 12 * 44).reshape(12, 44).to(dtype)
    matrix = in_layout(dense, layout)
    settings = itertools.product((False, True), (False, True), (False, True), (1, 3, 44))
    for upper, transpose, unit, columns in settings:
        right = rights[:, :columns]
        found = treadle.triangular_solve(right, matrix, upper, transpose, unit)
        wanted = treadle.triangular_solve(right, dense, upper, transpose, unit)
        assert_close(found.solution, wanted.solution, rtol=1e-5, atol=1e-4)
        assert found.cloned_coefficient.numel() == 0


@pytest.mark.parametrize("dtype", [treadle.float64, treadle.complex128])
def test_triangular_solve_has_gradients(dtype: Any) -> None:
    dense = random_matrix(6, dtype)
    right = treadle.arange(12).reshape(6, 2).to(dtype)
    for upper, transpose, unit in itertools.product((False, True), repeat=3):
        found = []
        for sparse in (True, False):
            b = right.clone().requires_grad_()
            values = dense.to_sparse_csr().values().requires_grad_()
            matrix = in_layout(dense, "sparse_csr")
            matrix = treadle.sparse_csr_tensor(
                matrix.crow_indices(), matrix.col_indices(), values, (6, 6)
            )
            a = matrix if sparse else matrix.to_dense()
            x = treadle.triangular_solve(b, a, upper, transpose, unit).solution
            weighted = x * treadle.arange(1, 13).reshape(6, 2)
            (
                weighted.real.square() + weighted.imag if dtype.is_complex else weighted**2
            ).sum().backward()
            found.append((b.grad, values.grad))
        assert_close(*found)


def test_triangular_solve_of_many_columns_has_the_same_bits_on_any_number_of_threads() -> None:
    dense = random_matrix(200, treadle.float32) + 20 * treadle.eye(200)
    matrix = dense.to_sparse_csr()
    right = treadle.linspace(-1, 1, 200 * 64).reshape(200, 64)
    before = treadle.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            treadle.set_num_threads(threads)
            found.append(treadle.triangular_solve(right, matrix, upper=False).solution)
    finally:
        treadle.set_num_threads(before)
    assert found[0].equal(found[1]) and found[0].equal(found[2])
    exact = treadle.triangular_solve(right.double(), dense.double(), upper=False).solution
    assert_close(found[0].double(), exact, rtol=1e-4, atol=1e-6)


def test_what_is_not_on_the_diagonal_is_zero() -> None:
    matrix = treadle.tensor([[2.0, 0], [1.0, 0]]).to_sparse_csr()
    right = treadle.tensor([[2.0], [3.0]])
    assert treadle.triangular_solve(right, matrix, upper=False).solution.tolist() == [
        [1.0],
        [float("inf")],
    ]
    unit = treadle.triangular_solve(right, matrix, upper=False, unitriangular=True).solution
    assert unit.tolist() == [[2.0], [1.0]]
    empty = treadle.triangular_solve(treadle.ones(0, 3), treadle.zeros(0, 0).to_sparse_csr())
    assert empty.solution.shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            lambda a: treadle.triangular_solve(treadle.ones(3), a),
            RuntimeError,
            "expected right sides of shape (3, k), got (3,)",
        ),
        (
            lambda a: treadle.triangular_solve(treadle.ones(2, 1), a),
            RuntimeError,
            "expected right sides of shape (3, k), got (2, 1)",
        ),
        (
            lambda a: treadle.triangular_solve(treadle.ones(3, 1), a[:, :2]),
            RuntimeError,
            "expected a square matrix, got shape (3, 2)",
        ),
        (
            lambda a: treadle.triangular_solve(treadle.ones(3, 1).double(), a),
            RuntimeError,
            "expected the same dtype, got treadle.float64 and treadle.float32",
        ),
        (
            lambda a: treadle.triangular_solve(treadle.ones(3, 1).half(), a.half()),
            NotImplementedError,
            "expected a dtype of float32, float64 and the complex ones, got treadle.float16",
        ),
        (
            lambda a: treadle.triangular_solve(a, treadle.eye(3)),
            NotImplementedError,
            "expected a strided right side and a sparse matrix, got layouts sparse_csr and strided",
        ),
    ],
)
def test_systems_that_are_refused(call: Callable, error: type, said: str) -> None:
    with pytest.raises(error) as raised:
        call(treadle.eye(3).to_sparse_csr())
    assert str(raised.value) == f"triangular_solve: {said}"


def test_a_program_that_writes_the_indices_is_told() -> None:
    matrix = treadle.eye(3).to_sparse_csr()
    matrix.col_indices()[1] = 7
    with pytest.raises(RuntimeError) as error:
        treadle.triangular_solve(treadle.ones(3, 1), matrix)
    assert str(error.value) == "triangular_solve: expected indices from 0 to 2, got 7"


# ---- products whose terms are not added ----


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_reduced_products(reduce: str) -> None:
    dense = treadle.tensor([[1.0, -2, 0], [0, 0, 0], [0, 0, 3]])
    other = treadle.tensor([[-1.5, 2], [0.5, 1], [2, -1]])
    terms = {
        "sum": [[-2.5, 0], [0, 0], [6, -3]],
        "mean": [[-1.25, 0], [0, 0], [6, -3]],
        "amax": [[-1, 2], [0, 0], [6, -3]],
        "amin": [[-1.5, -2], [0, 0], [6, -3]],
    }
    gradients = {  # as PyTorch's
        "sum": ([0.5, 1.5, 1], [[1, 1], [-2, -2], [3, 3]]),
        "mean": ([0.25, 0.75, 1], [[0.5, 0.5], [-1, -1], [3, 3]]),
        "amax": ([2, 0.5, 1], [[0, 1], [-2, 0], [3, 3]]),
        "amin": ([-1.5, 1, 1], [[1, 0], [0, -2], [3, 3]]),
    }
    matrix = dense.to_sparse_csr().requires_grad_()
    strided = other.clone().requires_grad_()
    found = treadle.sparse.mm(matrix, strided, reduce)
    assert_close(found.detach(), treadle.tensor(terms[reduce]).float())
    found.sum().backward()
    assert (matrix.grad.values().tolist(), strided.grad.tolist()) == gradients[reduce]
    assert treadle.sparse.mm(in_layout(dense, "sparse_coo"), other, reduce).equal(found.detach())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            (treadle.eye(2), treadle.ones(2, 1), "mean"),
            "mm: expected a sparse and a strided matrix for reduce, got layouts strided and "
            "strided",
        ),
        (
            (treadle.eye(2).to_sparse_csr(), treadle.ones(3, 1), "mean"),
            "mm: expected shapes (n, k) and (k, m), got (2, 2) and (3, 1)",
        ),
        (
            (treadle.eye(2).to_sparse_csr(), treadle.ones(2, 1).double(), "mean"),
            "mm: expected the same dtype, got treadle.float32 and treadle.float64",
        ),
        (
            (treadle.eye(2).to_sparse_csr(), treadle.ones(2, 1), "prod"),
            "mm: expected reduce in ('sum', 'mean', 'amax', 'amin'), got reduce = 'prod'",
        ),
    ],
)
def test_reduced_products_that_are_refused(arguments: Any, said: str) -> None:
    with pytest.raises(RuntimeError) as error:
        treadle.sparse.mm(*arguments)
    assert str(error.value) == said


# ---- other sizes ----


def test_a_sparse_tensor_takes_another_size() -> None:
    s = treadle.tensor([[1.0, 0], [0, 2]]).to_sparse()
    version = s._version
    assert s.sparse_resize_((3, 4), 2, 0) is s
    assert s.shape == (3, 4) and s.numel() == 12 and s.is_coalesced() and s._version > version
    assert s.to_dense().tolist() == [[1, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0]]
    assert (s @ treadle.ones(4, 1)).tolist() == [[1], [2], [0]]
    rows = treadle.sparse_coo_tensor([[1, 0]], [[1.0, 2], [3, 4]], (2, 2))
    rows.sparse_resize_((3, 3), 1, 1)
    assert rows.to_dense().tolist() == [[3, 4, 0], [1, 2, 0], [0, 0, 0]]
    assert rows.sparse_resize_and_clear_((2, 5, 1), 2, 1) is rows
    assert (rows.shape, rows._nnz(), rows.sparse_dim(), rows.dense_dim()) == ((2, 5, 1), 0, 2, 1)
    rows.sparse_resize_((4,), 1, 0)  # without entries any size
    assert rows.to_dense().tolist() == [0, 0, 0, 0]
    assert treadle.resize_as_sparse_(rows, s) is rows and rows.shape == (3, 4)


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_a_compressed_tensor_takes_the_entries_of_a_template(layout: str) -> None:
    blocks = (2, 1) if "b" in layout else None

    def made(dense: Any, dtype: Any = treadle.float32) -> treadle.Tensor:
        x = treadle.tensor(dense, dtype=dtype)
        return x.to_sparse(layout=getattr(treadle, layout), blocksize=blocks)

    small, large = made([[1.0, 0], [2, 0]]), made([[0, 5, 6], [0, 7, 8]], treadle.float64)
    kept = small.values().flatten().tolist()
    assert small.resize_as_sparse_(large) is small
    assert small.shape == (2, 3) and small.dtype is treadle.float32
    values = small.values()
    assert values.shape == large.values().shape
    assert values.flatten().tolist() == kept + [0] * (values.numel() - len(kept))
    assert small.to_dense().bool().sum() == len(kept)
    small.resize_as_sparse_(made([[3.0, 0], [0, 0]]))
    assert small.shape == (2, 2) and small.values().flatten()[0] == 1
    with pytest.raises(RuntimeError, match=f"expected a {layout} tensor as the template is, got"):
        treadle.eye(2).to_sparse().resize_as_sparse_(large)
    with pytest.raises(RuntimeError, match="does not require grad"):
        made([[1.0], [2.0]]).requires_grad_().resize_as_sparse_(large)


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (
            ((1, 2), 2, 0),
            "expected sparse dimensions that do not shrink for a tensor with entries, got sizes "
            "(1, 2) for (2, 2)",
        ),
        (
            ((2, 2, 1), 2, 1),
            "expected dense dimensions that do not shrink for a tensor with entries, got sizes "
            "(1,) for ()",
        ),
        (((2, 2), 1, 0), "expected a size of 1 sparse and 0 dense dimensions, got (2, 2)"),
        (((2, -2), 2, 0), "expected sizes >= 0, got (2, -2)"),
    ],
)
def test_sizes_that_are_refused(size: Any, said: str) -> None:
    s = treadle.eye(2).to_sparse()
    with pytest.raises(RuntimeError) as error:
        s.sparse_resize_(*size)
    assert str(error.value) == f"sparse_resize_: {said}"
    assert s.shape == (2, 2) and s.to_dense().equal(treadle.eye(2))


def test_tensors_that_keep_their_size() -> None:
    with pytest.raises(RuntimeError) as error:
        treadle.eye(2).sparse_resize_and_clear_((2, 2), 2, 0)
    assert str(error.value) == (
        "sparse_resize_and_clear_: expected a sparse_coo tensor, got a strided one of shape (2, 2)"
    )
    with pytest.raises(RuntimeError) as error:
        treadle.eye(2).to_sparse().resize_as_sparse_(treadle.eye(2))
    assert str(error.value) == (
        "resize_as_sparse_: expected a sparse template, got a strided one of shape (2, 2)"
    )
    leaf = treadle.eye(2).to_sparse().requires_grad_()
    with pytest.raises(RuntimeError) as error:
        leaf.sparse_resize_((3, 3), 2, 0)
    assert str(error.value) == (
        "sparse_resize_: expected a tensor that does not require grad, got one that does"
    )
