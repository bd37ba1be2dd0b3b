"""Layers for training with quantization in view: float layers that round their weights."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.ao.nn.qat._layers import (
    Conv1d,
    Conv2d,
    Conv3d,
    Embedding,
    EmbeddingBag,
    Linear,
)

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]

__getattr__ = _names.attributes_of(__name__)
