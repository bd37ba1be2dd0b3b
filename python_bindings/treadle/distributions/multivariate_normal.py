"""MultivariateNormal: vectors of normal numbers with any covariance."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C, linalg
from treadle._C import Size, Tensor
from treadle._functions.variadic import broadcast_shapes
from treadle.distributions import constraints
from treadle.distributions.distribution import Distribution
from treadle.distributions.utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Tensor, bvec: Tensor) -> Tensor:
    """Matrices (..., m, n) times vectors (..., n): (..., m). The batches broadcast."""
    return _C.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Tensor, bx: Tensor) -> Tensor:  # noqa: N803
    """|L^-1 x|^2 of lower triangular matrices (..., n, n) and vectors (..., n), which broadcast.

    Dimensions along which the matrix is the same become columns of one system, so that the matrix
    is not repeated for each vector.
    """
    n = bx.size(-1)
    batch = broadcast_shapes(bL.shape[:-2], bx.shape[:-1])
    bx = bx.expand(batch + (n,))
    sizes = (1,) * (len(batch) - bL.dim() + 2) + tuple(bL.shape[:-2])
    own = [i for i, size in enumerate(sizes) if size != 1]
    same = [i for i, size in enumerate(sizes) if size == 1]
    columns = bx.permute(*own, len(batch), *same)
    kept = [batch[i] for i in own]
    matrices = bL.reshape(kept + [n, n])
    solved = linalg.solve_triangular(matrices, columns.reshape(kept + [n, -1]), upper=False)
    lengths = solved.square().sum(-2).reshape(kept + [batch[i] for i in same])
    # Back to the order of the batch.
    order = own + same
    return lengths.permute([order.index(i) for i in range(len(batch))])


def _precision_to_scale_tril(P: Tensor) -> Tensor:  # noqa: N803
    """The Cholesky factor of the inverse of positive definite matrices (..., n, n).

    P turned by half a turn has a factor which, turned back, is upper triangular, U U.mT = P; then
    the factor looked for is the inverse of U.mT.
    """
    turned = linalg.cholesky(_C.flip(P, (-2, -1)))
    lower = _C.flip(turned, (-2, -1)).mT
    identity = _C.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return linalg.solve_triangular(lower, identity.expand(P.shape), upper=False)


class MultivariateNormal(Distribution):
    """The normal distribution of vectors of mean `loc` (..., n).

        MultivariateNormal(treadle.zeros(2), treadle.eye(2)).sample()

    Args:
        loc: the mean.
        covariance_matrix: a positive definite matrix (..., n, n), or
        precision_matrix: its inverse, or
        scale_tril: its Cholesky factor, which is what is computed with.

    ValueError unless exactly one of the three is given, with enough dimensions.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Optional[Tensor] = None,
        precision_matrix: Optional[Tensor] = None,
        scale_tril: Optional[Tensor] = None,
        validate_args: Optional[bool] = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        field, matrix = given_matrix(covariance_matrix, precision_matrix, scale_tril)
        check_is_matrix("scale_tril matrix" if field == "scale_tril" else field, matrix)
        batch_shape = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, field, matrix.expand(batch_shape + (-1, -1)))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        # Without the dimensions that the mean alone has.
        self._unbroadcasted_scale_tril = scale_tril_of(field, matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> MultivariateNormal:
        fields = ("loc", "covariance_matrix", "precision_matrix", "scale_tril")
        new = self._expand_fields(MultivariateNormal, batch_shape, _instance, *fields)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return self._finish_expand(MultivariateNormal, new, batch_shape)

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape + self._event_shape

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return _C.matmul(factor, factor.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return _C.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape())

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def _half_log_det(self) -> Tensor:
        diagonal = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1)
        return diagonal.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        square = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + square) - self._half_log_det()

    def entropy(self) -> Tensor:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape)


def check_is_matrix(name: str, matrix: Tensor) -> None:
    """ValueError for a tensor of fewer than two dimensions."""
    if matrix.dim() < 2:
        raise ValueError(
            f"{name} must be at least two-dimensional, with optional leading batch dimensions"
        )


def given_matrix(
    covariance_matrix: Optional[Tensor],
    precision_matrix: Optional[Tensor],
    scale_tril: Optional[Tensor],
    error: type[Exception] = ValueError,
) -> tuple[str, Tensor]:
    """The name and the value of the only one of the three that is given; `error` for another number
    of them.
    """
    matrices = {
        "covariance_matrix": covariance_matrix,
        "scale_tril": scale_tril,
        "precision_matrix": precision_matrix,
    }
    given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
    if len(given) != 1:
        raise error(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        )
    return given[0]


def scale_tril_of(field: str, matrix: Tensor) -> Tensor:
    """The Cholesky factor of the covariance that given_matrix() named."""
    if field == "scale_tril":
        return matrix
    if field == "covariance_matrix":
        return linalg.cholesky(matrix)
    return _precision_to_scale_tril(matrix)
