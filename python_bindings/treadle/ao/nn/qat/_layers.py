"""Float layers of nn that round their weights."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle import nn
from treadle._C import Tensor
from treadle.ao.nn.qat._rounded import RoundsWeight
from treadle.nn import functional
from treadle.nn.modules.linear import NonDynamicallyQuantizableLinear


class Linear(RoundsWeight, nn.Linear):
    """nn.Linear with a rounded weight."""

    _float_classes = (nn.Linear, NonDynamicallyQuantizableLinear)

    def forward(self, input: Tensor) -> Tensor:
        """The product with the rounded weight."""
        return functional.linear(input, self._rounded_weight(), self.bias)


class _Conv(RoundsWeight):
    bias: Any
    _conv_forward: Any

    def forward(self, input: Tensor) -> Tensor:
        """The convolution with the rounded weight."""
        return self._conv_forward(input, self._rounded_weight(), self.bias)


class Conv1d(_Conv, nn.Conv1d):
    """nn.Conv1d with a rounded weight."""

    _float_classes = (nn.Conv1d,)


class Conv2d(_Conv, nn.Conv2d):
    """nn.Conv2d with a rounded weight."""

    _float_classes = (nn.Conv2d,)


class Conv3d(_Conv, nn.Conv3d):
    """nn.Conv3d with a rounded weight."""

    _float_classes = (nn.Conv3d,)


class Embedding(RoundsWeight, nn.Embedding):
    """nn.Embedding with a rounded table."""

    _float_classes = (nn.Embedding,)

    def forward(self, input: Tensor) -> Tensor:
        """Rows of the rounded table."""
        return functional.embedding(
            input,
            self._rounded_weight(),
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )


class EmbeddingBag(RoundsWeight, nn.EmbeddingBag):
    """nn.EmbeddingBag with a rounded table."""

    _float_classes = (nn.EmbeddingBag,)

    def forward(
        self,
        input: Tensor,
        offsets: Optional[Tensor] = None,
        per_sample_weights: Optional[Tensor] = None,
    ) -> Tensor:
        """Sums, means or maxima of rows of the rounded table."""
        return functional.embedding_bag(
            input,
            self._rounded_weight(),
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )
