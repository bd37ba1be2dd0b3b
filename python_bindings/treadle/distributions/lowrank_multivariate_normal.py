"""LowRankMultivariateNormal: vectors of normal numbers, few of whose mixtures are shared."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C, linalg
from treadle._C import Size, Tensor
from treadle._functions.variadic import broadcast_shapes
from treadle.distributions import constraints
from treadle.distributions.distribution import Distribution
from treadle.distributions.multivariate_normal import (
    _batch_mahalanobis,
    _batch_mv,
    check_is_matrix,
)
from treadle.distributions.utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W: Tensor, D: Tensor) -> Tensor:  # noqa: N803
    """The Cholesky factor of I + W.mT D^-1 W, for W (..., n, m) and diagonals D (..., n)."""
    m = W.size(-1)
    capacitance = _C.matmul(W.mT / D.unsqueeze(-2), W)
    return linalg.cholesky(capacitance + _C.eye(m, dtype=W.dtype, device=W.device))


def _batch_lowrank_logdet(W: Tensor, D: Tensor, capacitance_tril: Tensor) -> Tensor:  # noqa: N803
    """log det(W W.mT + D), by the matrix determinant lemma."""
    of_factor = capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return 2 * of_factor + D.log().sum(-1)


def _batch_lowrank_mahalanobis(
    W: Tensor,  # noqa: N803
    D: Tensor,  # noqa: N803
    x: Tensor,
    capacitance_tril: Tensor,
) -> Tensor:
    """x (W W.mT + D)^-1 x for vectors (..., n), by Woodbury's identity."""
    projected = _batch_mv(W.mT / D.unsqueeze(-2), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, projected)


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors of covariance W @ W.mT + diag(D), W being `cov_factor` and
    D `cov_diag`. The matrices it factors are of the order of W's columns, so n may be large.

    Args:
        loc: the mean (..., n).
        cov_factor: a matrix (..., n, m).
        cov_diag: a positive diagonal (..., n).

    ValueError for shapes that do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: Optional[bool] = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        check_is_matrix("cov_factor", cov_factor)
        if tuple(cov_factor.shape[-2:-1]) != tuple(event_shape):
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if tuple(cov_diag.shape[-1:]) != tuple(event_shape):
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = broadcast_shapes(
                loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
            )
        except RuntimeError as error:
            raise ValueError(
                "Incompatible batch shapes: "
                f"loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        # Without the dimensions that other parameters alone have.
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)

    def expand(self, batch_shape: Any, _instance: Any = None) -> LowRankMultivariateNormal:
        fields = ("loc", "cov_factor", "cov_diag")
        new = self._expand_fields(LowRankMultivariateNormal, batch_shape, _instance, *fields)
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril
        return self._finish_expand(LowRankMultivariateNormal, new, batch_shape)

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape + self._event_shape

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return squares.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        # W W.mT + D = D^1/2 (I + V V.mT) D^1/2 with V = D^-1/2 W, which is well conditioned.
        n = self._event_shape[0]
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        identity = _C.eye(n, dtype=scaled.dtype, device=scaled.device)
        factor = root * linalg.cholesky(_C.matmul(scaled, scaled.mT) + identity)
        return factor.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        covariance = _C.matmul(factor, factor.mT) + _C.diag_embed(self._unbroadcasted_cov_diag)
        return covariance.expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by Woodbury's identity."""
        inverse_diag = self._unbroadcasted_cov_diag.reciprocal()
        weighted = self._unbroadcasted_cov_factor.mT * inverse_diag.unsqueeze(-2)
        solved = linalg.solve_triangular(self._capacitance_tril, weighted, upper=False)
        precision = _C.diag_embed(inverse_diag) - _C.matmul(solved.mT, solved)
        return precision.expand(self._matrix_shape())

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        like = {"dtype": self.loc.dtype, "device": self.loc.device}
        shared = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], **like)
        own = _standard_normal(shape, **like)
        return (
            self.loc
            + _batch_mv(self._unbroadcasted_cov_factor, shared)
            + self._unbroadcasted_cov_diag.sqrt() * own
        )

    def _log_det(self) -> Tensor:
        return _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        square = _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor,
            self._unbroadcasted_cov_diag,
            value - self.loc,
            self._capacitance_tril,
        )
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + square)

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        entropy = 0.5 * (n * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape)
