"""A linear layer and the loss of its result, as one."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional, Tuple

from treadle._C import Tensor
from treadle.nn import functional as F  # noqa: N812
from treadle.nn.modules.linear import Linear
from treadle.nn.modules.module import Module


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
        self.in_features, self.num_classes = in_features, num_classes
        self.out_features = tuple(out_features)
        rows = num_classes * math.prod(self.out_features)
        self.linear = Linear(in_features, rows, bias, device, dtype)
        self.register_buffer("weight", weight)
        self.reduction, self.ignore_index = reduction, ignore_index
        self.label_smoothing, self.options = label_smoothing, options

    def reset_parameters(self) -> None:
        """Draw weight and bias as Linear does."""
        self.linear.reset_parameters()

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss."""
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.view(*shape, self.in_features),
            target,
            linear_bias=None if bias is None else bias.view(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
