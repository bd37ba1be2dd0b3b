"""A linear layer and the loss of its result, as one."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple

import treadle
from treadle import Tensor
from treadle.nn import functional as F  # noqa: N812
from treadle.nn.modules.module import Module
from treadle.nn.parameter import Parameter


class LinearCrossEntropyLoss(Module):
    """cross_entropy() of a linear layer from `in_features` to `num_classes` (for each of
    `out_features`); see functional.linear_cross_entropy()."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: Tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Optional[Tensor] = None,
        ignore_index: Optional[int] = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        super().__init__()
        shape = (num_classes, *out_features)
        self.linear_weight = Parameter(
            treadle.empty(*shape, in_features, device=device, dtype=dtype)
        )
        self.linear_bias = (
            Parameter(treadle.empty(shape, device=device, dtype=dtype)) if bias else None
        )
        self.register_buffer("weight", weight)
        self.reduction, self.ignore_index = reduction, ignore_index
        self.label_smoothing, self.options = label_smoothing, options
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias as Linear does."""
        bound = 1 / math.sqrt(max(self.linear_weight.shape[-1], 1))
        treadle.nn.init.uniform_(self.linear_weight, -bound, bound)
        if self.linear_bias is not None:
            treadle.nn.init.uniform_(self.linear_bias, -bound, bound)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        return F.linear_cross_entropy(
            input,
            self.linear_weight,
            target,
            linear_bias=self.linear_bias,
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )
