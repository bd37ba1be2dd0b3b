"""Sparse tensors: values at coordinates (COO), made by treadle.sparse_coo_tensor() and
Tensor.to_sparse().

    adjacency = treadle.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    adjacency @ features          # strided, (2, m) of features (3, m)

Products with strided tensors, sums and functions of elements work on the entries alone; gradients
flow to the values and to the strided operand.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Callable, List, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.sparse import _dispatch, _math
from treadle.sparse._layout import sparse_coo as sparse_coo
from treadle.sparse._make import (
    check_sparse_tensor_invariants as check_sparse_tensor_invariants,
)
from treadle.sparse._make import sparse_coo_tensor as sparse_coo_tensor
from treadle.sparse._tensor import SparseTensor as SparseTensor
from treadle.sparse._tensor import empty as _empty

_dispatch.install()


def _any_sparse(*tensors: Any) -> bool:
    return any(issubclass(type(t), SparseTensor) for t in tensors)


def parts_of(tensors: Sequence[Any]) -> Tuple[Callable[[Sequence[Any]], tuple], List[Any]]:
    """The strided tensors that some tensors, sparse or not, consist of; and the function that makes
    of such parts tensors as the given ones."""
    parts: List[Any] = []
    makers: List[Tuple[int, Callable]] = []  # how many parts, and what makes a tensor of them
    for t in tensors:
        if _any_sparse(t):
            parts += [t._i, t._v]
            size, is_coalesced = t.shape, t.is_coalesced()
            makers.append((2, partial(SparseTensor, size=size, is_coalesced=is_coalesced)))
        else:
            parts.append(t)
            makers.append((1, lambda t: t))

    def rebuild(parts: Sequence[Any]) -> tuple:
        rest = iter(parts)
        return tuple(make(*islice(rest, count)) for count, make in makers)

    return rebuild, parts


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices (n, k) and (k, m), each sparse or strided; sparse if both are."""
    return _math.mm(mat1, mat2) if _any_sparse(mat1, mat2) else _C.mm(mat1, mat2)


spmm = mm


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * mat + alpha * mat1 @ mat2, where one of mat1 and mat2 may be sparse."""
    function = _math.addmm if _any_sparse(mat, mat1, mat2) else _C.addmm
    return function(mat, mat1, mat2, beta=beta, alpha=alpha)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: Any = None) -> Tensor:
    """A sparse matrix of `shape` with rows of `diagonals` on its diagonals.

    diagonals: (d, n), or (n) for one; offsets: d different numbers of int64, above 0 for diagonals
    above the main one. Column j of the matrix has the values of column j of `diagonals`.
    RuntimeError for other shapes, offsets and layouts than these and torch.sparse_coo.
    """
    rows = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    places = offsets.unsqueeze(0) if offsets.dim() == 0 else offsets
    if rows.dim() != 2 or places.dim() != 1 or rows.shape[0] != places.shape[0]:
        raise RuntimeError(
            "spdiags: expected diagonals of shape (d, n) and d offsets, got shapes "
            f"{tuple(diagonals.shape)} and {tuple(offsets.shape)}"
        )
    if places.dtype != _C.int64:
        raise RuntimeError(f"spdiags: expected offsets of int64, got {places.dtype}")
    if len(set(places.tolist())) != places.numel():
        raise RuntimeError(f"spdiags: expected different offsets, got {places.tolist()}")
    if len(shape) != 2:
        raise RuntimeError(f"spdiags: expected a shape of two sizes, got {tuple(shape)}")
    if layout not in (None, sparse_coo):
        raise RuntimeError(f"spdiags: expected the layout {sparse_coo}, got {layout}")
    column = _C.arange(rows.shape[1], device=rows.device).expand(rows.shape)
    row = column - places.unsqueeze(1)
    inside = (row >= 0) & (row < shape[0]) & (column < shape[1])
    return sparse_coo_tensor(_C.stack([row[inside], column[inside]]), rows[inside], shape)  # type: ignore[return-value]


def _expect_sparse(name: str, input: Any) -> None:
    if not _any_sparse(input):
        raise RuntimeError(f"{name}: expected a sparse tensor, got a strided one")


def sum(input: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum over dimensions; strided when no sparse dimension is left, else sparse."""
    _expect_sparse("sum", input)
    return _math.sum_keeping_dtype(input, dim, dtype)


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """softmax along a dimension over the entries: what is not one counts as minus infinity."""
    _expect_sparse("softmax", input)
    return _math.softmax("softmax", input, dim, dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of softmax()."""
    _expect_sparse("log_softmax", input)
    return _math.softmax("log_softmax", input, dim, dtype)


class _Type(type):
    if TYPE_CHECKING:
        dtype: _C.dtype  # of the classes

    def __instancecheck__(cls, instance: Any) -> bool:
        return _any_sparse(instance) and instance.dtype == cls.dtype

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
