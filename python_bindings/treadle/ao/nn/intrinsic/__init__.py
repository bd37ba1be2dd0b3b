"""Layers that follow each other, as one: a convolution and its normalisation and relu(), for
example.

Example:

    fuse_modules(model, ["conv", "relu"])         # puts ConvReLU2d in place of `conv`
"""

# SPDX-License-Identifier: Apache-2.0

from treadle import _names
from treadle.ao.nn.intrinsic._fused import (
    BNReLU2d,
    BNReLU3d,
    ConvBn1d,
    ConvBn2d,
    ConvBn3d,
    ConvBnReLU1d,
    ConvBnReLU2d,
    ConvBnReLU3d,
    ConvReLU1d,
    ConvReLU2d,
    ConvReLU3d,
    LinearBn1d,
    LinearReLU,
    _FusedModule,
)

__all__ = [
    "BNReLU2d",
    "BNReLU3d",
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "LinearBn1d",
    "LinearReLU",
]

__getattr__ = _names.attributes_of(__name__)
