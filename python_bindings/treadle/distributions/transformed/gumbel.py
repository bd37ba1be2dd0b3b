"""Gumbel: the largest of many numbers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C
from treadle._C import Tensor
from treadle._tensor.type_info import finfo
from treadle.distributions import constraints
from treadle.distributions._parameters.real import broadcast_parameters
from treadle.distributions.transformed_distribution import TransformedDistribution
from treadle.distributions.transforms import AffineTransform, ExpTransform
from treadle.distributions.uniform import Uniform
from treadle.distributions.utils import euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The distribution function exp(-exp(-(x - loc) / scale)); numbers or tensors that
    broadcast.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: Optional[bool] = None) -> None:
        (self.loc, self.scale), batch_shape = broadcast_parameters(loc, scale)
        info = finfo(self.loc.dtype)
        low = _C.full(batch_shape, info.tiny, dtype=self.loc.dtype, device=self.loc.device)
        base = Uniform(low, _C.full_like(low, 1 - info.eps), validate_args=validate_args)
        # loc - scale * log(-log(u))
        transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-_C.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Gumbel:
        new = self._expand_fields(Gumbel, batch_shape, _instance, "loc", "scale")
        return super().expand(batch_shape, _instance=new)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
