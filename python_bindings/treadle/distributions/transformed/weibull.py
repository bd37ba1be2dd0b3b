"""Weibull: a power of an exponential number, as the time to a failure."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle import _C
from treadle._C import Tensor
from treadle.distributions import constraints
from treadle.distributions.exponential import Exponential
from treadle.distributions.transformed_distribution import TransformedDistribution
from treadle.distributions.transforms import AffineTransform, PowerTransform
from treadle.distributions.utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """scale * x^(1 / concentration) for standard exponential numbers x; numbers or tensors that
    broadcast.
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(
        self, scale: Any, concentration: Any, validate_args: Optional[bool] = None
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(_C.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Weibull:
        fields = ("scale", "concentration", "concentration_reciprocal")
        new = self._expand_fields(Weibull, batch_shape, _instance, *fields)
        return super().expand(batch_shape, _instance=new)

    def _moment(self, n: int) -> Tensor:
        """The mean of the n-th power of x^(1 / concentration)."""
        return _C.exp(_C.lgamma(1 + n * self.concentration_reciprocal))

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        shrunk = (self.concentration - 1) / self.concentration
        return self.scale * shrunk**self.concentration_reciprocal

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (self._moment(2) - self._moment(1).pow(2))

    def entropy(self) -> Tensor:
        return (
            euler_constant * (1 - self.concentration_reciprocal)
            + _C.log(self.scale * self.concentration_reciprocal)
            + 1
        )
