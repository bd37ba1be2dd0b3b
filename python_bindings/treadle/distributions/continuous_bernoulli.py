"""ContinuousBernoulli: the Bernoulli likelihood as a density of [0, 1]."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle.distributions import constraints
from treadle.distributions._parameters.probs_or_logits import ProbsOrLogits, check_one_given
from treadle.distributions.exp_family import ExponentialFamily
from treadle.distributions.utils import Number, broadcast_all, clamp_probs
from treadle.nn.functional import binary_cross_entropy_with_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """The density proportional to probs^x (1 - probs)^(1 - x) of [0, 1]. Here `probs` is a
    parameter of (0, 1) and no probability. See Loaiza-Ganem and Cunningham, "The continuous
    Bernoulli: fixing a pervasive error in variational autoencoders" (2019).

    Args:
        probs: the parameter; a number or a tensor.
        logits: its log-odds, instead.
        lims: between these, around 1/2, where the formulas are quotients of zeros, their Taylor
            series are taken.

    ValueError unless exactly one of `probs` and `logits` is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: Optional[bool] = None,
    ) -> None:
        check_one_given(probs, logits)
        given = logits if probs is None else probs
        (self._param,) = broadcast_all(given)
        if probs is None:
            self.logits = self._param
        else:
            if validate_args and not constraints.unit_interval.check(self._param).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = self._param = clamp_probs(self._param)
        self._lims = lims
        batch_shape = Size() if isinstance(given, Number) else self._param.size()
        super().__init__(batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> ContinuousBernoulli:
        fields = ("probs", "logits", "_param")
        new = self._expand_fields(ContinuousBernoulli, batch_shape, _instance, *fields)
        new._lims = self._lims
        return self._finish_expand(ContinuousBernoulli, new, batch_shape)

    def _outside_unstable_region(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        """`probs`, and a number that the formulas take in place of those near 1/2: a NaN that is
        chosen away in the value would still reach the gradient.
        """
        return _C.where(self._outside_unstable_region(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """The logarithm of the normalising factor, 2 atanh(1 - 2 probs) / (1 - 2 probs)."""
        cut = self._cut_probs()
        low = cut <= 0.5
        below, above = _C.where(low, cut, 0.0), _C.where(low, 1.0, cut)
        log_gap = _C.where(low, _C.log1p(-2.0 * below), _C.log(2.0 * above - 1.0))
        log_norm = _C.log(_C.abs(_C.log1p(-cut) - _C.log(cut))) - log_gap
        x = _C.pow(self.probs - 0.5, 2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return _C.where(self._outside_unstable_region(), log_norm, taylor)

    @property
    def mean(self) -> Tensor:
        cut = self._cut_probs()
        mean = cut / (2.0 * cut - 1.0) + 1.0 / (_C.log1p(-cut) - _C.log(cut))
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * _C.pow(x, 2)) * x
        return _C.where(self._outside_unstable_region(), mean, taylor)

    @property
    def stddev(self) -> Tensor:
        return _C.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        cut = self._cut_probs()
        log_odds = _C.log1p(-cut) - _C.log(cut)
        variance = cut * (cut - 1.0) / _C.pow(1.0 - 2.0 * cut, 2) + 1.0 / _C.pow(log_odds, 2)
        x = _C.pow(self.probs - 0.5, 2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return _C.where(self._outside_unstable_region(), variance, taylor)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(_C.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        likelihood = -binary_cross_entropy_with_logits(logits, value, reduction="none")
        return likelihood + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut_probs()
        powers = _C.pow(cut, value) * _C.pow(1.0 - cut, 1.0 - value)
        cdf = (powers + cut - 1.0) / (2.0 * cut - 1.0)
        cdf = _C.where(self._outside_unstable_region(), cdf, value)
        return _C.where(value <= 0.0, 0.0, _C.where(value >= 1.0, 1.0, cdf))

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut_probs()
        moved = _C.log1p(-cut + value * (2.0 * cut - 1.0)) - _C.log1p(-cut)
        icdf = moved / (_C.log(cut) - _C.log1p(-cut))
        return _C.where(self._outside_unstable_region(), icdf, value)

    def entropy(self) -> Tensor:
        log_probs0, log_probs1 = _C.log1p(-self.probs), _C.log(self.probs)
        weighted = self.mean * (log_probs0 - log_probs1)
        return weighted - self._cont_bern_log_norm() - log_probs0

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = _C.where(outside, x, self._lims[0] - 0.5)
        log_norm = _C.log(_C.abs(_C.expm1(cut))) - _C.log(_C.abs(cut))
        taylor = 0.5 * x + _C.pow(x, 2) / 24.0 - _C.pow(x, 4) / 2880.0
        return _C.where(outside, log_norm, taylor)
