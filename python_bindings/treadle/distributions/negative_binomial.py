"""NegativeBinomial: how many successes come before a number of failures."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributions import constraints
from treadle.distributions._parameters.probs_or_logits import ProbsOrLogits, check_one_given
from treadle.distributions.distribution import Distribution
from treadle.distributions.gamma import Gamma
from treadle.distributions.utils import broadcast_all, lazy_property
from treadle.nn.functional import logsigmoid

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The number of successes before `total_count` failures, of trials that succeed with
    probability `probs`. The number of failures need not be whole.

    Args:
        total_count: the number of failures, not negative; a number or a tensor.
        probs: the probability of success, in [0, 1).
        logits: its log-odds, instead.

    ValueError unless exactly one of `probs` and `logits` is given.
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Optional[Tensor] = None,
        logits: Optional[Tensor] = None,
        validate_args: Optional[bool] = None,
    ) -> None:
        check_one_given(probs, logits)
        given = logits if probs is None else probs
        self.total_count, self._param = broadcast_all(total_count, given)
        self.total_count = self.total_count.type_as(self._param)
        if probs is None:
            self.logits = self._param
        else:
            self.probs = self._param
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> NegativeBinomial:
        fields = ("total_count", "probs", "logits", "_param")
        return self._expanded(NegativeBinomial, batch_shape, _instance, *fields)

    @property
    def mean(self) -> Tensor:
        return self.total_count * _C.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / _C.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        """The distribution of the rate: a Poisson number of such a rate is a number of this."""
        return Gamma(concentration=self.total_count, rate=_C.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return _C.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        of_trials = self.total_count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        total = self.total_count + value
        log_ways = _C.lgamma(total) - _C.lgamma(1.0 + value) - _C.lgamma(self.total_count)
        # No failures are waited for: 0 successes, surely.
        return of_trials + log_ways.masked_fill(total == 0.0, 0.0)
