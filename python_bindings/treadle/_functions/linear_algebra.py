"""Functions of linear algebra that take their operands in more ways than an operator does.

Example:

    einsum("ij,jk->ik", a, b)
    einsum(a, [0, 1], b, [1, 2], [0, 2])
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import operator
from typing import Any, List, Optional, Sequence, Tuple, Union

from treadle import _C
from treadle._C import Tensor
from treadle._functions.overridable import make_overridable as _make_overridable

_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def _operands(tensors: Tuple[Any, ...]) -> Sequence[Tensor]:
    """Tensors given one by one, or as one list."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tensors[0]
    return tensors


def _letters(labels: Sequence[Any]) -> str:
    """Labels in [0, 52) or an ellipsis, as they stand in an equation."""
    text = ""
    for label in labels:
        if label is Ellipsis:
            text += "..."
            continue
        number = operator.index(label)
        if not 0 <= number < 52:
            raise ValueError(f"einsum: expected labels in [0, 52), got {number}")
        text += chr(ord("a") + number if number < 26 else ord("A") + number - 26)
    return text


def einsum(*args: Any) -> Tensor:
    """Sums of products by the summation convention: of an equation and its operands, or of operands
    each followed by a list of labels, and the labels of the result.
    """
    if len(args) < 2:
        raise ValueError(
            f"einsum: expected an equation and at least one operand, got {len(args)} arguments"
        )
    if isinstance(args[0], str):
        return _C.einsum(args[0], list(_operands(args[1:])))
    terms = ",".join(_letters(labels) for labels in args[1::2])
    if len(args) % 2:
        terms = ",".join(_letters(labels) for labels in args[1:-1:2]) + "->" + _letters(args[-1])
    return _C.einsum(terms, list(args[0 : len(args) // 2 * 2 : 2]))


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Optional[Tensor] = None) -> Tensor:
    """Sums over pairs of dimensions: the last of `a` and the first of `b`, as many as `dims` says,
    or those of two lists.
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, (list, tuple)):
        if len(dims) != 2:
            raise RuntimeError(f"tensordot: expected dims of two lists, got {dims}")
        of_a, of_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        count = operator.index(dims)
        if not 0 <= count <= min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot: expected dims in [0, {min(a.dim(), b.dim())}], got dims = {count}"
            )
        of_a, of_b = list(range(-count, 0)), list(range(count))
    if out is None:
        return _C.tensordot(a, b, of_a, of_b)
    return _C.tensordot(a, b, of_a, of_b, out=out)


def block_diag(*tensors: Tensor) -> Tensor:
    """The matrices along the diagonal of one that is zero elsewhere."""
    return _C.block_diag(list(tensors))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every choice of one element from each 1-dim tensor."""
    return _C.cartesian_prod(list(tensors))


def chain_matmul(*matrices: Tensor, out: Optional[Tensor] = None) -> Tensor:
    """The product of matrices in the order that needs the fewest multiplications."""
    operands = list(_operands(matrices))
    return _C.chain_matmul(operands) if out is None else _C.chain_matmul(operands, out=out)


def cdist(
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """The `p`-norm of the difference of each row of `x1` from each row of `x2`."""
    if compute_mode not in _MODES:
        raise ValueError(f"cdist: expected compute_mode in {tuple(_MODES)}, got {compute_mode!r}")
    return _C.cdist(x1, x2, p, _MODES[compute_mode])


def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None
) -> Union[Tuple[Tensor, Tensor], Tuple[Tensor, Tensor, Tensor]]:
    """LU factors in one matrix and the exchanges of rows, with `get_infos` also which factors have
    a zero pivot.
    """
    factors, pivots, infos = _C._lu_with_info(A, pivot, not get_infos)
    results: List[Tensor] = [factors, pivots, infos][: 2 + get_infos]
    if out is None:
        return tuple(results)  # type: ignore[return-value]
    if len(out) != len(results):
        raise TypeError(f"lu: expected {len(results)} tensors as out, got {len(out)}")
    for target, result in zip(out, results):
        target.resize_(result.shape).copy_(result)
    return out


def _range_of(A: Tensor, q: int, niter: int, M: Optional[Tensor]) -> Tensor:
    """Orthonormal columns that span nearly what the q largest singular vectors of A - M do."""
    difference = A if M is None else A - M
    R = _C.randn((*A.shape[:-2], A.shape[-1], q), dtype=A.dtype, device=A.device)
    Q = _C._linalg.linalg_qr(difference @ R)[0]
    for _ in range(niter):
        Q = _C._linalg.linalg_qr(difference.mH @ Q)[0]
        Q = _C._linalg.linalg_qr(difference @ Q)[0]
    return Q


def svd_lowrank(
    A: Tensor, q: Optional[int] = 6, niter: Optional[int] = 2, M: Optional[Tensor] = None
) -> Tuple[Tensor, Tensor, Tensor]:
    """U, S, V of nearly the best approximation of A - M by a matrix of rank `q`, or of the rank of
    A if that is less, from random directions. A may be sparse.
    """
    q = 6 if q is None else q
    if A.dim() < 2:
        raise ValueError(f"svd_lowrank: expected a matrix, got shape {tuple(A.shape)}")
    if q < 0:
        raise ValueError(f"svd_lowrank: expected q >= 0, got q = {q}")
    q = min(q, *A.shape[-2:])
    if M is not None:
        M = M.broadcast_to(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = A.mH, None if M is None else M.mH
    Q = _range_of(A, q, 2 if niter is None else niter, M)
    B = Q.mH @ (A if M is None else A - M)
    U, S, Vh = _C._linalg.linalg_svd(B, full_matrices=False)
    U, V = Q @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(
    A: Tensor, q: Optional[int] = None, center: bool = True, niter: int = 2
) -> Tuple[Tensor, Tensor, Tensor]:
    """The first `q` principal components of the rows of A, from random directions: U, S, V with
    A nearly U diag(S) V^H. A may be sparse; with `center` it is made strided.
    """
    if A.dim() < 2:
        raise ValueError(f"pca_lowrank: expected a matrix, got shape {tuple(A.shape)}")
    q = min(6, *A.shape[-2:]) if q is None else q
    if not 0 <= q <= min(A.shape[-2:]):
        raise ValueError(f"pca_lowrank: expected q in [0, {min(A.shape[-2:])}], got q = {q}")
    if niter < 0:
        raise ValueError(f"pca_lowrank: expected niter >= 0, got niter = {niter}")
    if center:
        A = A.to_dense()
        A = A - A.mean(dim=-2, keepdim=True)
    return svd_lowrank(A, q, niter)


_make_overridable(
    __name__,
    """block_diag cartesian_prod cdist chain_matmul einsum lu pca_lowrank svd_lowrank
    tensordot""".split(),
)
Tensor.lu = lu  # type: ignore[assignment]
