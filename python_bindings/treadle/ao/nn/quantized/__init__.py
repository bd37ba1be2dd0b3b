"""Layers that work on quantized tensors.

Example:

    convert(prepared)        # puts Linear of this module in place of nn.Linear
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.ao.nn.quantized import functional as functional
from treadle.ao.nn.quantized._conv import Conv1d, Conv2d, Conv3d
from treadle.ao.nn.quantized._embedding import Embedding, EmbeddingBag
from treadle.ao.nn.quantized._functional_modules import (
    FloatFunctional,
    FXFloatFunctional,
    QFunctional,
)
from treadle.ao.nn.quantized._in_float import (
    ELU,
    BatchNorm2d,
    BatchNorm3d,
    Dropout,
    GroupNorm,
    Hardswish,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    LeakyReLU,
    PReLU,
    ReLU6,
    Sigmoid,
    Softmax,
)
from treadle.ao.nn.quantized._linear import Linear
from treadle.ao.nn.quantized._stubs import DeQuantize, Quantize

__all__ = [
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "DeQuantize",
    "Dropout",
    "ELU",
    "Embedding",
    "EmbeddingBag",
    "FXFloatFunctional",
    "FloatFunctional",
    "GroupNorm",
    "Hardswish",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "PReLU",
    "QFunctional",
    "Quantize",
    "ReLU6",
    "Sigmoid",
    "Softmax",
]

__getattr__ = _names.attributes_of(__name__)
