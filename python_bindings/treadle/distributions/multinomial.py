"""Multinomial: how often each class is drawn in a number of draws."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle.distributions import constraints
from treadle.distributions.binomial import Binomial
from treadle.distributions.categorical import Categorical
from treadle.distributions.distribution import Distribution
from treadle.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


# Up to so many draws are made one by one.
_MANY = 10_000


class Multinomial(Distribution):
    """How often each of K classes comes up in `total_count` draws of a Categorical.

    `log_prob` and `entropy` take the draws to be `total_count`; a value of another sum has the
    log-probability of that many draws, where values are not validated.

    Args:
        total_count: the number of draws, an int.
        probs: probabilities (..., K), not negative, which are divided by their sum.
        logits: their logarithms up to a constant, instead.

    NotImplementedError for a `total_count` that is not an int.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Optional[Tensor] = None,
        logits: Optional[Tensor] = None,
        validate_args: Optional[bool] = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        batch_shape = self._categorical.batch_shape
        event_shape = self._categorical.param_shape[-1:]
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Multinomial:
        new = self._get_checked_instance(Multinomial, _instance)
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = self._binomial.expand(Size(batch_shape) + self._event_shape)
        return self._finish_expand(Multinomial, new, batch_shape)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of `probs` and `logits`."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        if self.total_count > _MANY:
            return self._sample_many(sample_shape)
        drawn = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        # The draws, last; each adds one to its class.
        drawn = drawn.permute(*range(1, drawn.dim()), 0)
        counts = self.probs.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, _C.ones_like(drawn, dtype=counts.dtype))
        return counts

    def _sample_many(self, sample_shape: Size) -> Tensor:
        """Class by class: of the draws that are left each class gets a binomial number."""
        shape = self._extended_shape(sample_shape)
        probs = self.probs.detach().to(_C.float64).expand(shape)
        share = probs / probs.flip(-1).cumsum(-1).flip(-1)  # of the class and those after it
        left = _C.full(shape[:-1], float(self.total_count), dtype=_C.float64, device=probs.device)
        counts = []
        for place in range(shape[-1]):
            p = share.select(-1, place).nan_to_num(0.0).clamp(0, 1)
            counts.append(left if place == shape[-1] - 1 else _C.binomial(left, p))
            left = left - counts[-1]
        return _C.stack(counts, -1).to(self.probs.dtype)

    def entropy(self) -> Tensor:
        # n times a draw's, less the logarithm of the number of orders of the draws: n! over the
        # factorials of the counts, each of which is binomial.
        n = _C.tensor(self.total_count, dtype=self.probs.dtype, device=self.probs.device)
        of_draws = n * self._categorical.entropy() - _C.lgamma(n + 1)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        weights = _C.exp(self._binomial.log_prob(counts)) * _C.lgamma(counts + 1)
        return of_draws + weights.sum([0, -1])

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_orders = _C.lgamma(value.sum(-1) + 1) - _C.lgamma(value + 1).sum(-1)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        return log_orders + (logits * value).sum(-1)
