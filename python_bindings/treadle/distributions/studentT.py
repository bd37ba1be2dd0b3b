"""StudentT: a normal number over the root of a mean of squares of others."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle.distributions import constraints
from treadle.distributions._parameters.real import broadcast_parameters
from treadle.distributions.chi2 import Chi2
from treadle.distributions.distribution import Distribution
from treadle.distributions.utils import _standard_normal

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t-distribution of `df` degrees of freedom, moved by `loc` and stretched by `scale`;
    numbers or tensors that broadcast. The mean is NaN for df <= 1, the variance infinite for
    df <= 2.
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: Optional[bool] = None
    ) -> None:
        (self.df, self.loc, self.scale), _ = broadcast_parameters(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> StudentT:
        new = self._expand_fields(StudentT, batch_shape, _instance, "df", "loc", "scale")
        new._chi2 = self._chi2.expand(batch_shape)
        return self._finish_expand(StudentT, new, batch_shape)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        variance = self.scale.pow(2) * self.df / (self.df - 2)
        variance = variance.masked_fill(self.df <= 2, math.inf)
        return variance.masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        squares = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * x * _C.rsqrt(squares / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        log_normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + _C.lgamma(0.5 * self.df)
            - _C.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * _C.log1p(y**2.0 / self.df) - log_normalizer

    def entropy(self) -> Tensor:
        log_beta = _C.lgamma(0.5 * self.df) + math.lgamma(0.5) - _C.lgamma(0.5 * (self.df + 1))
        return (
            self.scale.log()
            + 0.5 * (self.df + 1) * (_C.digamma(0.5 * (self.df + 1)) - _C.digamma(0.5 * self.df))
            + 0.5 * self.df.log()
            + log_beta
        )
