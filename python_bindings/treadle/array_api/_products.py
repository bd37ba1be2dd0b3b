"""Products of arrays as vectors and matrices, shared by the main namespace and `linalg`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Sequence, Tuple, Union

from treadle import _C
from treadle._C import Tensor
from treadle._functions.linear_algebra import tensordot as _tensordot
from treadle.array_api._dtypes import together


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices; a 1-dim array is a vector."""
    return _C.matmul(*together("matmul", x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dimensions exchanged."""
    return x.mT


def tensordot(
    x1: Tensor,
    x2: Tensor,
    /,
    *,
    axes: Union[int, Tuple[Sequence[int], Sequence[int]]] = 2,
) -> Tensor:
    """Sums of products over some dimensions of both."""
    return _tensordot(*together("tensordot", x1, x2), dims=axes)  # type: ignore[misc]


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of conj(x1) * x2 along `axis`, which counts from the end."""
    a, b = together("vecdot", x1, x2)
    if not -min(a.ndim, b.ndim) <= axis < 0:
        raise ValueError(
            f"vecdot: expected axis in [{-min(a.ndim, b.ndim)}, -1], got axis = {axis}"
        )
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(
            f"vecdot: expected one size along axis {axis}, got {a.shape[axis]} and {b.shape[axis]}"
        )
    return _C.sum(_C.conj(a) * b, axis, dtype=a.dtype)
