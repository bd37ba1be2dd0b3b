"""Transforms of vectors to points of a simplex, and of vectors and matrices to Cholesky factors and
positive definite matrices.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any

from treadle import _C, linalg
from treadle._C import Size, Tensor
from treadle._tensor.type_info import finfo
from treadle.distributions import constraints
from treadle.distributions.transforms.elementwise import _clipped_sigmoid, _OfOneKind
from treadle.distributions.transforms.transform import Transform
from treadle.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from treadle.nn.functional import logsigmoid, pad, softplus


def _check_vector(shape: Any) -> None:
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")


class SoftmaxTransform(_OfOneKind):
    """y = exp(x) over its sum, along the last dimension. Not bijective: the inverse gives log(y).
    Coordinates keep their meaning, which suits optimisation; for a density take
    StickBreakingTransform.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _check_vector(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        _check_vector(shape)
        return shape


class StickBreakingTransform(_OfOneKind):
    """A vector of n numbers to n + 1 that sum to 1: each is a share, a sigmoid, of what those
    before it left of a stick. Zeros become equal parts.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _shifted(self, x: Tensor) -> Tensor:
        """`x` less the logarithm of how many parts are still to come."""
        to_come = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        return x - to_come.log()

    def _call(self, x: Tensor) -> Tensor:
        share = _clipped_sigmoid(self._shifted(x))
        left = (1 - share).cumprod(-1)
        return pad(share, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        to_come = y.shape[-1] - parts.new_ones(parts.shape[-1]).cumsum(-1)
        # The rest is positive even where parts that were rounded sum to more than 1.
        left = _C.clamp(1 - parts.cumsum(-1), min=finfo(y.dtype).tiny)
        return parts.log() - left.log() + to_come.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shifted = self._shifted(x)
        return (-shifted + logsigmoid(shifted) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _check_vector(shape)
        return Size(shape[:-1]) + Size((shape[-1] + 1,))

    def inverse_shape(self, shape: Any) -> Any:
        _check_vector(shape)
        return Size(shape[:-1]) + Size((shape[-1] - 1,))


class CorrCholeskyTransform(Transform):
    """A vector of n (n - 1) / 2 numbers to the Cholesky factor of an (n, n) correlation matrix.

    tanh of the vector, the part below the diagonal row by row, are partial correlations; each takes
    its share of what the ones before it left of the row's length, 1. See Lewandowski, Kurowicka and
    Joe (2009).
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = finfo(x.dtype).eps
        partial = vec_to_tril_matrix(_C.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - partial**2).sqrt().cumprod(-1)
        whole = partial + _C.eye(partial.shape[-1], dtype=partial.dtype, device=partial.device)
        return whole * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        # By row, the square of what is left after each column.
        left = 1 - _C.cumsum(y * y, dim=-1)
        left = tril_matrix_to_vec(pad(left[..., :-1], [1, 0], value=1), diag=-1)
        partial = tril_matrix_to_vec(y, diag=-1) / left.sqrt()
        return (partial.log1p() - (-partial).log1p()) / 2  # atanh, exact near 1

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # A change of an element moves those after it in the row; the matrix is triangular, and its
        # diagonal is what was left at the element times the slope of tanh.
        left = 1 - (y * y).cumsum(dim=-1)
        of_left = 0.5 * tril_matrix_to_vec(left, diag=-2).log().sum(-1)
        of_tanh = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return of_left + of_tanh

    def forward_shape(self, shape: Any) -> Any:
        _check_vector(shape)
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size(shape[:-1]) + Size((size, size))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        size = shape[-1]
        return Size(shape[:-2]) + Size((size * (size - 1) // 2,))


class LowerCholeskyTransform(_OfOneKind):
    """Matrices to lower triangular ones with a positive diagonal, the exponential of theirs. The
    elements above the diagonal have no influence.
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_OfOneKind):
    """Matrices to positive definite ones: L @ L.mT of LowerCholeskyTransform's L."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))
