"""HalfCauchy: the absolute value of a Cauchy number."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional

from treadle import _C
from treadle._C import Tensor
from treadle.distributions.cauchy import Cauchy
from treadle.distributions.transformed._folded import Folded
from treadle.distributions.transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(Folded):
    """|x| for Cauchy numbers x of median 0 and half width `scale`, a number or a tensor. Its mean
    is infinite.
    """

    base_dist: Cauchy

    def __init__(self, scale: Any, validate_args: Optional[bool] = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> HalfCauchy:
        new = self._get_checked_instance(HalfCauchy, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Tensor:
        return _C.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
