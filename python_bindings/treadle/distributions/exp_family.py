"""Distributions of the exponential family, whose entropy follows from their log-normaliser."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Union

from treadle._C import Size, Tensor
from treadle.autograd import grad
from treadle.autograd.grad_mode import enable_grad
from treadle.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Base of densities exp(<t(x), theta> - F(theta) + k(x)), with t the sufficient statistics,
    theta the natural parameters, F the log-normaliser and k the carrier measure.

    A subclass defines `_natural_params`, `_log_normalizer` and `_mean_carrier_measure`, the mean of
    k(x). From them come `entropy` and the divergence of two members of a family; see Nielsen and
    Nock, "Entropies and cross-entropies of exponential families" (2010).
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Union[float, Tensor]:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """F(theta) - <theta, grad F(theta)> - E[k], of shape batch_shape."""
        with enable_grad():
            params = [p.detach().requires_grad_() for p in self._natural_params]
            normalizer = self._log_normalizer(*params)
            slopes = grad(normalizer.sum(), params, create_graph=True)
        result = normalizer - self._mean_carrier_measure
        for param, slope in zip(params, slopes):
            result = result - (param * slope).reshape(self._batch_shape + Size((-1,))).sum(-1)
        return result
