"""Convolution of images."""

from __future__ import annotations

from typing import Optional, Union

from treadle import Tensor

from .._operators import ops

_IntPair = Union[int, tuple[int, int]]


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    stride: _IntPair = 1,
    padding: Union[str, _IntPair] = 0,
    dilation: _IntPair = 1,
    groups: int = 1,
) -> Tensor:
    """Convolve (N, C, H, W) with (outputs, C / groups, kH, kW); padding may be 'same' or
    'valid'."""
    return ops.conv2d(input, weight, bias, stride, padding, dilation, groups)
