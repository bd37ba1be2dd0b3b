"""Categorical: one of a number of classes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle._functions.variadic import broadcast_tensors
from treadle._tensor.type_info import finfo
from treadle.distributions import constraints
from treadle.distributions._parameters.probs_or_logits import ProbsOrLogits, check_one_given
from treadle.distributions.distribution import Distribution

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits, Distribution):
    """An integer of 0, ..., K - 1, where K is the size of the last dimension of the parameter; its
    other dimensions are the batch.

    Args:
        probs: probabilities, not negative, which are divided by their sum.
        logits: their logarithms up to a constant, instead.

    ValueError unless exactly one is given, with at least one dimension.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self,
        probs: Optional[Tensor] = None,
        logits: Optional[Tensor] = None,
        validate_args: Optional[bool] = None,
    ) -> None:
        check_one_given(probs, logits)
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        else:
            assert logits is not None  # check_one_given
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = self._param = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Categorical:
        new = self._expand_fields(Categorical, batch_shape, _instance, "probs", "logits", "_param")
        new._num_events = self._num_events
        return self._finish_expand(Categorical, new, batch_shape)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    def _unknown(self) -> Tensor:
        """NaN: classes have no mean."""
        return _C.full(
            self._batch_shape, math.nan, dtype=self.probs.dtype, device=self.probs.device
        )

    @property
    def mean(self) -> Tensor:
        return self._unknown()

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return self._unknown()

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = _C.multinomial(rows, sample_shape.numel(), True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, log_pmf = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        # A class of probability 0 adds 0.
        logits = _C.clamp(self.logits, min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = _C.arange(self._num_events, dtype=_C.long, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
