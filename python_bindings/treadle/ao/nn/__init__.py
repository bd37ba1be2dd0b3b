"""Layers for quantization: on quantized tensors (`quantized`), on floats with weights that are
quantized (`quantized.dynamic`), for training (`qat`), and several layers in one (`intrinsic`)."""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
