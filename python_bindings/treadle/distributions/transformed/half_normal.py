"""HalfNormal: the absolute value of a normal number."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle._C import Tensor
from treadle.distributions.normal import Normal
from treadle.distributions.transformed._folded import Folded
from treadle.distributions.transforms import AbsTransform

__all__ = ["HalfNormal"]


class HalfNormal(Folded):
    """|x| for normal numbers x of mean 0 and standard deviation `scale`, a number or a tensor."""

    base_dist: Normal

    def __init__(self, scale: Any, validate_args: Optional[bool] = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> HalfNormal:
        new = self._get_checked_instance(HalfNormal, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)
