"""Binomial: how many of a number of trials succeed."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributions import constraints
from treadle.distributions._parameters.probs_or_logits import ProbsOrLogits, check_one_given
from treadle.distributions.distribution import Distribution
from treadle.distributions.utils import broadcast_all

__all__ = ["Binomial"]


def _positive_part(x: Tensor) -> Tensor:
    """max(x, 0), of which the slope at 0 is 1/2."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(ProbsOrLogits, Distribution):
    """The number of successes among `total_count` trials, each of probability `probs`.

    Args:
        total_count: the number of trials; a number or a tensor.
        probs: the probability of success.
        logits: its log-odds, instead.

    ValueError unless exactly one of `probs` and `logits` is given.
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
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

    def expand(self, batch_shape: Any, _instance: Any = None) -> Binomial:
        fields = ("total_count", "probs", "logits", "_param")
        return self._expanded(Binomial, batch_shape, _instance, *fields)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return _C.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # k log(p) + (n - k) log(1 - p) is k logits - n log(1 + exp(logits)), and that logarithm is
        # taken so that its exponential does not overflow.
        log_ways = (
            _C.lgamma(self.total_count + 1)
            - _C.lgamma(value + 1)
            - _C.lgamma(self.total_count - value + 1)
        )
        log_one_plus = _positive_part(self.logits) + _C.log1p(_C.exp(-_C.abs(self.logits)))
        return value * self.logits + log_ways - self.total_count * log_one_plus

    def _trials(self, what: str) -> int:
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return total

    def entropy(self) -> Tensor:
        """Raises NotImplementedError where `total_count` has different numbers."""
        self._trials("entropy")
        log_probs = self.log_prob(self.enumerate_support(False))
        return -(_C.exp(log_probs) * log_probs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Raises NotImplementedError where `total_count` has different numbers."""
        total = self._trials("enumerate_support")
        values = _C.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
