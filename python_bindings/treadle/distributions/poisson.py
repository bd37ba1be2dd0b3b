"""Poisson: how many events come that may come at any moment alike."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle._functions.variadic import broadcast_tensors
from treadle.autograd.grad_mode import no_grad
from treadle.distributions import constraints
from treadle.distributions._parameters.real import broadcast_parameters
from treadle.distributions.exp_family import ExponentialFamily

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """Counts k of probability rate^k exp(-rate) / k!; `rate` is a number or a tensor."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: Optional[bool] = None) -> None:
        (self.rate,), batch_shape = broadcast_parameters(rate)
        super().__init__(batch_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Poisson:
        return self._expanded(Poisson, batch_shape, _instance, "rate")

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return _C.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_tensors(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (_C.log(self.rate),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return _C.exp(x)
