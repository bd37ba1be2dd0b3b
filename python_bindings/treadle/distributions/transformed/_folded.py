"""Distributions of the absolute value of a number that lies around 0."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any

from treadle import _C
from treadle._C import Tensor
from treadle.distributions import constraints
from treadle.distributions.transformed_distribution import TransformedDistribution


class Folded(TransformedDistribution):
    """Base of HalfNormal and HalfCauchy: |x| for x of a distribution that is symmetric around 0,
    where its density doubles.
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    @property
    def scale(self) -> Tensor:
        """The scale of the distribution that is folded."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return _C.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return _C.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob: Any) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
