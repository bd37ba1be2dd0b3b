"""Wishart: random covariance matrices."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import warnings
from typing import Any, Optional

from treadle import _C, linalg
from treadle._C import Size, Tensor
from treadle._functions.variadic import broadcast_shapes
from treadle._tensor.type_info import finfo
from treadle.distributions import constraints
from treadle.distributions.chi2 import Chi2
from treadle.distributions.exp_family import ExponentialFamily
from treadle.distributions.multivariate_normal import (
    check_is_matrix,
    given_matrix,
    scale_tril_of,
)
from treadle.distributions.utils import Number, lazy_property

__all__ = ["Wishart"]


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of mvlgamma."""
    halves = _C.arange(p, dtype=x.dtype, device=x.device).div(2)
    return _C.digamma(x.unsqueeze(-1) - halves.expand(x.shape + (-1,))).sum(-1)


class Wishart(ExponentialFamily):
    """The sum of x x.mT over `df` normal vectors x of mean 0 and the given covariance, for any
    df > n - 1.

    Args:
        df: the degrees of freedom; a number or a tensor.
        covariance_matrix: a positive definite matrix (..., n, n), or
        precision_matrix: its inverse, or
        scale_tril: its Cholesky factor.

    AssertionError unless exactly one matrix is given; ValueError for too few dimensions or too
    small a `df`; a warning where df < n, for which a matrix drawn may be singular.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> Any:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Optional[Tensor] = None,
        precision_matrix: Optional[Tensor] = None,
        scale_tril: Optional[Tensor] = None,
        validate_args: Optional[bool] = None,
    ) -> None:
        field, matrix = given_matrix(
            covariance_matrix, precision_matrix, scale_tril, error=AssertionError
        )
        check_is_matrix("scale_tril", matrix)
        like = {"dtype": matrix.dtype, "device": matrix.device}
        df = _C.tensor(df, **like) if isinstance(df, Number) else df
        batch_shape = broadcast_shapes(matrix.shape[:-2], df.shape)
        event_shape = matrix.shape[-2:]
        self.df = df.expand(batch_shape)
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(
                f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}."
            )
        setattr(self, field, matrix.expand(batch_shape + (-1, -1)))
        if self.df.lt(event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        # Without the dimensions that `df` alone has.
        self._unbroadcasted_scale_tril = scale_tril_of(field, matrix)
        self._make_chi2()

    def _make_chi2(self) -> None:
        """The squares of the diagonal of a standard factor have falling degrees of freedom."""
        below = _C.arange(
            self._event_shape[-1],
            dtype=self._unbroadcasted_scale_tril.dtype,
            device=self._unbroadcasted_scale_tril.device,
        )
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - below.expand(self._batch_shape + (-1,)))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Wishart:
        fields = ("df", "covariance_matrix", "precision_matrix", "scale_tril")
        new = self._expand_fields(Wishart, batch_shape, _instance, *fields)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        new = self._finish_expand(Wishart, new, batch_shape)
        new._make_chi2()
        return new

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the vectors."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Its inverse."""
        inverse = _C.cholesky_inverse(self._unbroadcasted_scale_tril)
        return inverse.expand(self._batch_shape + self._event_shape)

    @property
    def mean(self) -> Tensor:
        return self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, math.nan)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        spread = covariance.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(self._batch_shape + (1, 1)) * spread

    def _bartlett_sampling(self, sample_shape: Any = Size()) -> Tensor:
        """L A A.mT L.mT for the factor L of the covariance and Bartlett's lower triangular A: roots
        of chi-square numbers, and normal numbers below them.
        """
        p = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).clamp_min(finfo(self.df.dtype).tiny).sqrt()
        noise = _C.diag_embed(roots, dim1=-2, dim2=-1)
        below = _C.tril_indices(p, p, offset=-1)
        shape = Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,)
        noise[..., below[0], below[1]] = _C.randn(shape, dtype=noise.dtype, device=noise.device)
        chol = self._unbroadcasted_scale_tril @ noise
        return chol @ chol.mT

    def rsample(
        self, sample_shape: Any = Size(), max_try_correction: Optional[int] = None
    ) -> Tensor:
        """Matrices of shape sample_shape + batch_shape + (n, n). Those that are singular by
        rounding are drawn anew, at most `max_try_correction` times, 10 by default, with a warning.
        """
        sample = self._bartlett_sampling(sample_shape)
        for attempt in range(10 if max_try_correction is None else max_try_correction):
            singular = ~self.support.check(sample)
            if not singular.any():
                break
            if attempt == 0:
                warnings.warn("Singular sample detected.", stacklevel=2)
            again = self._bartlett_sampling(sample_shape)
            sample = _C.where(singular[..., None, None], again, sample)
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        half_log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        solved = _C.cholesky_solve(value, factor)
        return (
            -nu * (p * math.log(2) / 2 + half_log_det)
            - _C.mvlgamma(nu / 2, p)
            + (nu - p - 1) / 2 * linalg.slogdet(value).logabsdet
            - solved.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        half_log_det = factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return (
            (p + 1) * (p * math.log(2) / 2 + half_log_det)
            + _C.mvlgamma(nu / 2, p)
            - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p)
            + nu * p / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        nu, p = self.df, self._event_shape[-1]
        return -self.precision_matrix / 2, (nu - p - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-linalg.slogdet(-2 * x).logabsdet + math.log(2) * p) + _C.mvlgamma(half, p)
