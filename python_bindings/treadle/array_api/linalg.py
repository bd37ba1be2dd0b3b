"""The standard's extension `linalg`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
from typing import NamedTuple, Optional, Tuple, Union

from treadle import _C
from treadle import linalg as _linalg
from treadle._C import Tensor
from treadle.array_api import _reductions
from treadle.array_api._dtypes import Dtype, together
from treadle.array_api._products import matmul, matrix_transpose, tensordot, vecdot

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul",
    "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr",
    "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class EigResult(NamedTuple):
    """The result of eig."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """The result of eigh."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The result of qr."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The result of slogdet."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The result of svd."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: builtins.bool = False) -> Tensor:
    """The triangular factor of positive definite matrices."""
    return _linalg.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of 3 elements; other dimensions broadcast."""
    a, b = together("cross", x1, x2)
    if not -min(a.ndim, b.ndim) <= axis < 0 and a.ndim != b.ndim:
        raise ValueError(f"cross: expected axis in [{-min(a.ndim, b.ndim)}, -1], got axis = {axis}")
    while a.ndim != b.ndim:
        a, b = (_C.unsqueeze(a, 0), b) if a.ndim < b.ndim else (a, _C.unsqueeze(b, 0))
    return _linalg.cross(a, b, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinant of matrices."""
    return _linalg.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The diagonals of matrices."""
    return _C.diagonal(x, offset, -2, -1)


def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices, complex ones always."""
    return EigResult(*_linalg.eig(x))


def eigvals(x: Tensor, /) -> Tensor:
    """The eigenvalues that `eig` gives."""
    return _linalg.eigvals(x)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues, in ascending order, and eigenvectors of Hermitian matrices."""
    return EighResult(*_linalg.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues that `eigh` gives."""
    return _linalg.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """The inverse of matrices."""
    return _linalg.inv(x)


def matrix_norm(
    x: Tensor, /, *, keepdims: builtins.bool = False, ord: Optional[Union[int, float, str]] = "fro"
) -> Tensor:
    """The norm of matrices."""
    return _linalg.matrix_norm(x, "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The product of `n` equal matrices, or of their inverses where `n` is negative."""
    return _linalg.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Optional[Union[float, Tensor]] = None) -> Tensor:
    """How many singular values are above `rtol` times the largest one."""
    return _linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of an element of `x1` and one of `x2`."""
    return _C.outer(*together("outer", x1, x2))


def pinv(x: Tensor, /, *, rtol: Optional[Union[float, Tensor]] = None) -> Tensor:
    """The pseudo-inverse of matrices."""
    return _linalg.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """A matrix with orthonormal columns and a triangular one, whose product is `x`."""
    return QRResult(*_linalg.qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Sign and logarithm of the magnitude of the determinant."""
    return SlogdetResult(*_linalg.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution x of `x1 @ x = x2`; only a 1-dim `x2` is a vector, others are matrices."""
    a, b = together("solve", x1, x2)
    while 1 < b.ndim < a.ndim:
        b = _C.unsqueeze(b, 0)
    return _linalg.solve(a, b)


def svd(x: Tensor, /, *, full_matrices: builtins.bool = True) -> SVDResult:
    """Singular vectors and values of matrices."""
    return SVDResult(*_linalg.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of matrices."""
    return _linalg.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Optional[Dtype] = None) -> Tensor:
    """The sum of a diagonal of matrices."""
    return _reductions.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Tensor,
    /,
    *,
    axis: Optional[Union[int, Tuple[int, ...]]] = None,
    keepdims: builtins.bool = False,
    ord: Union[int, float] = 2,
) -> Tensor:
    """The norm of all elements, or of those along `axis`, as a vector."""

    def norm(x: Tensor, d: Tuple[int, ...], k: builtins.bool) -> Tensor:
        return _linalg.vector_norm(x, ord, d, k)

    return _reductions._reduce(norm, x, axis, keepdims)
