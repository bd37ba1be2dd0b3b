"""Products by the names for sparse matrices. All tensors are strided, for which each is the product
of dense ones; a sparse tensor cannot be made.
"""

from __future__ import annotations

from typing import Any

import treadle
from treadle._C import Tensor


def mm(mat1: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices (n, k) and (k, m)."""
    return treadle.mm(mat1, mat2)


spmm = mm


def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * mat + alpha * mat1 @ mat2."""
    return treadle.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


class _Type(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return False  # no tensor is sparse

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return treadle.sparse_coo_tensor(*args, **kwargs)


class FloatTensor(metaclass=_Type):
    """The older name of sparse tensors of float32: raises as treadle.sparse_coo_tensor() does."""


class DoubleTensor(metaclass=_Type):
    """The same of float64."""


class LongTensor(metaclass=_Type):
    """The same of int64."""
