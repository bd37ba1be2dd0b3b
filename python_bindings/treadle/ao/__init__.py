"""Quantization's names. There are no quantized tensors; what prepares a model for them and works on
ordinary ones does that."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
