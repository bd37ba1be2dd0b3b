"""GeneralizedPareto: what exceeds a high threshold."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle.distributions import constraints
from treadle.distributions._parameters.real import broadcast_parameters
from treadle.distributions.distribution import Distribution

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The chance 1 / (1 + concentration z)^(1 / concentration) of a number above loc + scale z, for
    z >= 0; exp(-z) where `concentration` is 0. Numbers or tensors that broadcast.
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: Optional[bool] = None
    ) -> None:
        given, batch_shape = broadcast_parameters(loc, scale, concentration)
        self.loc, self.scale, self.concentration = given
        super().__init__(batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> GeneralizedPareto:
        fields = ("loc", "scale", "concentration")
        return self._expanded(GeneralizedPareto, batch_shape, _instance, *fields)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        upper = _C.where(
            self.concentration < 0, self.loc - self.scale / self.concentration, math.inf
        )
        return constraints.interval(self.loc, upper)

    def _split(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is 0, and the concentration with 1 in those places: a NaN that is
        chosen away in the value would still reach the gradient.
        """
        zero = _C.isclose(self.concentration, _C.zeros_like(self.concentration))
        return zero, _C.where(zero, _C.ones_like(self.concentration), self.concentration)

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(_C.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the chance of a number above `value`."""
        if self._validate_args:
            self._validate_sample(value)
        zero, safe = self._split()
        z = self._z(value)
        return _C.where(zero, -z, -_C.log1p(safe * z) / safe)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        zero, safe = self._split()
        z = self._z(value)
        log_density = -(1 / safe + 1) * _C.log1p(safe * z)
        return _C.where(zero, -z, log_density) - _C.log(self.scale)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of cdf."""
        return _C.log1p(-_C.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return _C.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        zero, safe = self._split()
        log_rest = _C.log1p(-value)
        return self.loc + self.scale * _C.where(zero, -log_rest, _C.expm1(-safe * log_rest) / safe)

    @property
    def mean(self) -> Tensor:
        """NaN for a concentration of 1 or more."""
        mean = self.loc + self.scale / (1 - self.concentration)
        return mean.masked_fill(self.concentration >= 1, math.nan)

    @property
    def variance(self) -> Tensor:
        """NaN for a concentration of 1/2 or more."""
        rest = 1 - self.concentration
        variance = self.scale**2 / (rest**2 * (1 - 2 * self.concentration))
        return variance.masked_fill(self.concentration >= 0.5, math.nan)

    def entropy(self) -> Tensor:
        return _C.log(self.scale) + self.concentration + 1

    @property
    def mode(self) -> Tensor:
        return self.loc
