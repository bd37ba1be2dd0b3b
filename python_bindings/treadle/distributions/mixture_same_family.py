"""MixtureSameFamily: a distribution chosen by a Categorical among those of one class."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Mapping, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributions import constraints
from treadle.distributions.categorical import Categorical
from treadle.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """Values of `component_distribution`, the last of whose batch dimensions is chosen along by
    `mixture_distribution`.

        # five normal distributions
        mix = Categorical(treadle.ones(5))
        mixture = MixtureSameFamily(mix, Normal(treadle.randn(5), treadle.rand(5)))

    ValueError where the batch shapes of the two do not fit.
    """

    arg_constraints: Mapping[str, constraints.Constraint] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: Optional[bool] = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of "
                "torch.distributions.Distribution"
            )
        batch = component_distribution.batch_shape[:-1]
        mixed = mixture_distribution.batch_shape
        for one, other in zip(reversed(mixed), reversed(batch)):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        count = mixture_distribution.logits.shape[-1]
        components = component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components})"
            )
        self._num_component = count
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> MixtureSameFamily:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        components = self._component_distribution
        new._component_distribution = components.expand(batch_shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        return self._finish_expand(MixtureSameFamily, new, batch_shape)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)  # type: ignore[arg-type]

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution that chooses a component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _weights(self) -> Tensor:
        """The probabilities of the components, with the dimensions of a value behind them."""
        return self._pad_mixture_dimensions(self._mixture_distribution.probs)

    @property
    def mean(self) -> Tensor:
        return _C.sum(self._weights() * self._component_distribution.mean, dim=self._component_dim)

    @property
    def variance(self) -> Tensor:
        # The mean of the variances, and the variance of the means.
        weights, dim = self._weights(), self._component_dim
        components = self._component_distribution
        within = _C.sum(weights * components.variance, dim=dim)
        away = components.mean - self._pad(self.mean)
        return within + _C.sum(weights * away.pow(2.0), dim=dim)

    @property
    def _component_dim(self) -> int:
        """The dimension of the components in a tensor of values of each."""
        return -1 - self._event_ndims

    def cdf(self, x: Tensor) -> Tensor:
        of_components = self._component_distribution.cdf(self._pad(x))
        return _C.sum(of_components * self._mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        of_components = self._component_distribution.log_prob(self._pad(x))
        log_weights = _C.log_softmax(self._mixture_distribution.logits, dim=-1)
        return _C.logsumexp(of_components + log_weights, dim=-1)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            sample_shape = Size(sample_shape)
            chosen = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self._batch_shape)
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            index = index.expand(chosen.shape + (1,) + self._event_shape)
            return _C.gather(values, dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        """Values with a dimension for the components."""
        return x.unsqueeze(self._component_dim)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Numbers of components (..., K) with dimensions for a value behind them."""
        return x.reshape(x.shape + (1,) * self._event_ndims)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
        )
