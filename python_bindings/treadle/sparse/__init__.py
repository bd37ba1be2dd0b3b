"""Sparse tensors: by coordinates (sparse_coo), by rows (sparse_csr) or columns (sparse_csc), and by
blocks (sparse_bsr, sparse_bsc). They are made by treadle.sparse_coo_tensor(),
treadle.sparse_csr_tensor() and their kind, and by Tensor.to_sparse(), Tensor.to_sparse_csr(), ...

    adjacency = treadle.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    adjacency @ features          # strided, (2, m) of features (3, m)

Products with strided tensors, sums and functions of elements work on the entries alone; gradients
flow to the values and to the strided operand. The operators are those of all tensors.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence

from treadle import _C, _names
from treadle._C import Tensor
from treadle._C import sparse_coo as sparse_coo
from treadle.sparse._make import COMPRESSED as _COMPRESSED
from treadle.sparse._make import (
    check_sparse_tensor_invariants as check_sparse_tensor_invariants,
)
from treadle.sparse._make import empty as _empty
from treadle.sparse._make import sparse_bsc_tensor as sparse_bsc_tensor
from treadle.sparse._make import sparse_bsr_tensor as sparse_bsr_tensor
from treadle.sparse._make import sparse_compressed_tensor as sparse_compressed_tensor
from treadle.sparse._make import sparse_coo_tensor as sparse_coo_tensor
from treadle.sparse._make import sparse_csc_tensor as sparse_csc_tensor
from treadle.sparse._make import sparse_csr_tensor as sparse_csr_tensor


def mm(mat1: Tensor, mat2: Tensor, reduce: Optional[str] = None) -> Tensor:
    """The product of two matrices (n, k) and (k, m), each sparse or strided; sparse if both are.

    With `reduce` the first is sparse and the second strided, both of a floating dtype. 'sum' adds
    the terms mat1[i, k] * mat2[k, j] of the entries of a row, 'mean' averages them, 'amax' and
    'amin' take the largest and the smallest one. A row without entries gives 0. RuntimeError for
    another `reduce`, and for shapes, layouts and dtypes that do not fit.
    """
    if reduce is None:
        return _C.mm(mat1, mat2)
    return _names.package().ops.aten._sparse_mm.reduce(mat1, mat2, reduce)


spmm = mm


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * mat + alpha * mat1 @ mat2, where one of mat1 and mat2 may be sparse."""
    return _C.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1.0, alpha: Any = 1.0
) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2) at the entries of a sparse_csr tensor `input`, of two
    strided matrices. RuntimeError for other layouts, and for shapes that do not fit."""
    return _C.sparse_sampled_addmm(input, mat1, mat2, beta=beta, alpha=alpha)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """A sparse matrix of `shape` with rows of `diagonals` on its diagonals.

    diagonals: (d, n), or (n) for one; offsets: d different numbers of int64, above 0 for diagonals
    above the main one. Column j of the matrix has the values of column j of `diagonals`.
    RuntimeError for other shapes, offsets and layouts than sparse_coo, sparse_csr and
    sparse_csc.
    """
    return _names.package().ops.aten._spdiags(diagonals, offsets, shape, layout)


def as_sparse_gradcheck(gradcheck: Callable) -> Callable:
    """`gradcheck` itself: autograd.gradcheck() and autograd.gradgradcheck() take sparse tensors."""
    return gradcheck


def _expect_sparse(name: str, input: Any) -> None:
    if input.layout not in (sparse_coo, *_COMPRESSED):
        raise RuntimeError(f"{name}: expected a sparse tensor, got a strided one")


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum over dimensions; strided when no sparse dimension is left, else sparse."""
    _expect_sparse("sum", input)
    dims = [dim] if isinstance(dim, int) else dim
    return _names.package().ops.aten._sparse_sum(input, dims, False, dtype)


def softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """softmax along a dimension over the entries: what is not one counts as minus infinity."""
    _expect_sparse("softmax", input)
    return _names.package().ops.aten._sparse_softmax(input, dim, False, dtype)


def log_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """The logarithm of softmax()."""
    _expect_sparse("log_softmax", input)
    return _names.package().ops.aten._sparse_softmax(input, dim, True, dtype)


class _Type(type):
    if TYPE_CHECKING:
        dtype: _C.dtype  # of the classes

    def __instancecheck__(cls, instance: Any) -> bool:
        is_sparse = isinstance(instance, Tensor) and instance.is_sparse
        return is_sparse and instance.dtype == cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Tensor):
            return sparse_coo_tensor(*args, **kwargs)
        size = args[0] if args and not isinstance(args[0], int) else args
        return _empty(tuple(size) or (0,), cls.dtype, **kwargs)


class FloatTensor(metaclass=_Type):
    """The older name: FloatTensor(indices, values, size), which has the dtype of the values, or
    FloatTensor(*sizes) without entries. Its instances are the sparse tensors of float32."""

    dtype = _C.float32


class DoubleTensor(metaclass=_Type):
    """The same of float64."""

    dtype = _C.float64


class LongTensor(metaclass=_Type):
    """The same of int64."""

    dtype = _C.int64
