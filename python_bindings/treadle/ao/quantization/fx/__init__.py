"""Quantization of graphs: the parts of quantize_fx."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
