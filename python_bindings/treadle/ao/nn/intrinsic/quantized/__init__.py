"""Layers on quantized tensors that end in relu()."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.ao.nn.quantized._conv import ConvReLU1d, ConvReLU2d, ConvReLU3d
from treadle.ao.nn.quantized._in_float import BNReLU2d, BNReLU3d
from treadle.ao.nn.quantized._linear import LinearReLU

__all__ = ["BNReLU2d", "BNReLU3d", "ConvReLU1d", "ConvReLU2d", "ConvReLU3d", "LinearReLU"]

__getattr__ = _names.attributes_of(__name__)
