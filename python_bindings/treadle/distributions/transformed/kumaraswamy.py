"""Kumaraswamy: a distribution of (0, 1) much like Beta, with a simple distribution function."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C
from treadle._C import Tensor
from treadle.distributions import constraints
from treadle.distributions._parameters.real import broadcast_parameters
from treadle.distributions.transformed_distribution import TransformedDistribution
from treadle.distributions.transforms import AffineTransform, PowerTransform
from treadle.distributions.uniform import Uniform
from treadle.distributions.utils import euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The distribution function 1 - (1 - x^concentration1)^concentration0 of (0, 1); numbers or
    tensors that broadcast.
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: Optional[bool] = None
    ) -> None:
        given, _ = broadcast_parameters(concentration1, concentration0)
        self.concentration1, self.concentration0 = given
        base = Uniform(
            _C.full_like(self.concentration0, 0),
            _C.full_like(self.concentration0, 1),
            validate_args=validate_args,
        )
        # (1 - u^(1 / concentration0))^(1 / concentration1)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Kumaraswamy:
        fields = ("concentration1", "concentration0")
        new = self._expand_fields(Kumaraswamy, batch_shape, _instance, *fields)
        return super().expand(batch_shape, _instance=new)

    def _moment(self, n: int) -> Tensor:
        """The mean of the n-th power: b B(1 + n / a, b) for a, b = concentration1, 0."""
        of_power = 1 + n / self.concentration1
        log_beta = (
            _C.lgamma(of_power)
            + _C.lgamma(self.concentration0)
            - _C.lgamma(of_power + self.concentration0)
        )
        return self.concentration0 * _C.exp(log_beta)

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = a.reciprocal() * ((a - 1) / (a * b - 1)).log()
        return log_mode.exp().masked_fill((a < 1) | (b < 1), math.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - _C.pow(self.mean, 2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = _C.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - _C.log(a) - _C.log(b)
