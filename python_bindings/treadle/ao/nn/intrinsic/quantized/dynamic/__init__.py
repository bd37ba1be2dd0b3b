"""Layers on floats, with weights in eight bits, that end in relu()."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.ao.nn.quantized.dynamic._linear import LinearReLU

__all__ = ["LinearReLU"]

__getattr__ = _names.attributes_of(__name__)
