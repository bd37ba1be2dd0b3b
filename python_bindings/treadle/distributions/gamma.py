"""Gamma: the sum of `concentration` exponential numbers, for any number of them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from treadle import _C, special
from treadle._C import Size, Tensor
from treadle._tensor.type_info import finfo
from treadle.distributions import constraints
from treadle.distributions._parameters.real import broadcast_parameters
from treadle.distributions.exp_family import ExponentialFamily

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The density proportional to x^(concentration - 1) exp(-rate x); numbers or tensors that
    broadcast. Samples are differentiable by the concentration, too, by implicit reparameterisation.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: Optional[bool] = None) -> None:
        (self.concentration, self.rate), batch_shape = broadcast_parameters(concentration, rate)
        super().__init__(batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        return self._expanded(Gamma, batch_shape, _instance, "concentration", "rate")

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _C._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        # Positive, for logarithms are taken of it; the gradient is left as it is.
        value.detach().clamp_(min=finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = _C.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        return (
            _C.xlogy(self.concentration, self.rate)
            + _C.xlogy(self.concentration - 1, value)
            - self.rate * value
            - _C.lgamma(self.concentration)
        )

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        return (
            self.concentration
            - _C.log(self.rate)
            + _C.lgamma(self.concentration)
            + (1.0 - self.concentration) * _C.digamma(self.concentration)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return _C.lgamma(x + 1) + (x + 1) * _C.log(-y.reciprocal())
