"""Convolution over one to three dimensions and its transpose, and the windows of images as
columns."""

from __future__ import annotations

from typing import Optional, Union

from treadle import Tensor

from .._operators import ops

_Ints = Union[int, tuple[int, ...]]


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    stride: _Ints = 1,
    padding: Union[str, _Ints] = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve ([N,] C, L) with (outputs, C / groups, kL); padding may be 'same' or 'valid'."""
    return ops.conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    stride: _Ints = 1,
    padding: Union[str, _Ints] = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve ([N,] C, H, W) with (outputs, C / groups, kH, kW); padding may be 'same' or
    'valid'."""
    return ops.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    stride: _Ints = 1,
    padding: Union[str, _Ints] = 0,
    dilation: _Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve ([N,] C, D, H, W) with (outputs, C / groups, kD, kH, kW); padding may be 'same' or
    'valid'."""
    return ops.conv3d(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    stride: _Ints = 1,
    padding: _Ints = 0,
    output_padding: _Ints = 0,
    groups: int = 1,
    dilation: _Ints = 1,
) -> Tensor:
    """The transpose of :func:`conv1d`, by a weight (C, outputs / groups, kL)."""
    return ops.conv_transpose1d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    stride: _Ints = 1,
    padding: _Ints = 0,
    output_padding: _Ints = 0,
    groups: int = 1,
    dilation: _Ints = 1,
) -> Tensor:
    """The transpose of :func:`conv2d`, by a weight (C, outputs / groups, kH, kW)."""
    return ops.conv_transpose2d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    stride: _Ints = 1,
    padding: _Ints = 0,
    output_padding: _Ints = 0,
    groups: int = 1,
    dilation: _Ints = 1,
) -> Tensor:
    """The transpose of :func:`conv3d`, by a weight (C, outputs / groups, kD, kH, kW)."""
    return ops.conv_transpose3d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )


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
