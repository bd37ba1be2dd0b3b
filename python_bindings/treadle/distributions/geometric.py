"""Geometric: how many trials fail before the first success."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle import _C
from treadle._C import Size, Tensor
from treadle._tensor.type_info import finfo
from treadle.autograd.grad_mode import no_grad
from treadle.distributions import constraints
from treadle.distributions._parameters.probs_or_logits import ProbsOrLogits, check_one_given
from treadle.distributions.distribution import Distribution, describe
from treadle.distributions.utils import Number, broadcast_all
from treadle.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits, Distribution):
    """The count k = 0, 1, ... of failures before the first success, (1 - probs)^k probs.

    `Tensor.geometric_` counts the success, too, and begins at 1.

    Args:
        probs: the probability of success, in (0, 1]; a number or a tensor.
        logits: its log-odds, instead.

    ValueError unless exactly one is given.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: Optional[bool] = None
    ) -> None:
        check_one_given(probs, logits)
        given = logits if probs is None else probs
        (self._param,) = broadcast_all(given)
        if probs is None:
            self.logits = self._param
        else:
            self.probs = self._param
        batch_shape = Size() if isinstance(given, Number) else self._param.size()
        super().__init__(batch_shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            bad = self.probs[~(self.probs > 0)]
            raise ValueError(
                f"Expected parameter probs ({describe(self.probs)}) of distribution {self!r} "
                f"to be positive but found invalid values:\n{bad}"
            )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Geometric:
        return self._expanded(Geometric, batch_shape, _instance, "probs", "logits", "_param")

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return _C.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            u = _C.rand(shape, dtype=self._param.dtype, device=self._param.device)
            u = u.clamp(min=finfo(u.dtype).tiny)
            return (u.log() / (-self.probs.expand(shape)).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        # 0 failures that are certain: 0 * log(0) is 0.
        fail = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-fail).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        of_a_trial = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return of_a_trial / self.probs
