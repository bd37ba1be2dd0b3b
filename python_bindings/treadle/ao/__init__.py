"""Quantization: `quantization` has what prepares and converts models, `nn` the layers."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
