"""Convolution over one to three dimensions and its transpose, and the windows of images as
columns."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Union

from treadle._C import Tensor

from .._operators import ops

_Ints = Union[int, tuple[int, ...]]

# The operators themselves.
conv1d = ops.conv1d
conv2d = ops.conv2d
conv3d = ops.conv3d
conv_transpose1d = ops.conv_transpose1d
conv_transpose2d = ops.conv_transpose2d
conv_transpose3d = ops.conv_transpose3d


def unfold(
    input: Tensor,
    kernel_size: _Ints,
    dilation: _Ints = 1,
    padding: _Ints = 0,
    stride: _Ints = 1,
) -> Tensor:
    """The windows of ([N,] C, H, W) as the columns of ([N,] C * kernel elements, windows)."""
    return ops.im2col(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor,
    output_size: _Ints,
    kernel_size: _Ints,
    dilation: _Ints = 1,
    padding: _Ints = 0,
    stride: _Ints = 1,
) -> Tensor:
    """Columns added up at their windows' places: the transpose of :func:`unfold`."""
    return ops.col2im(input, output_size, kernel_size, dilation, padding, stride)
