"""Pooling: the largest or the mean value under a window that slides over an image."""

from __future__ import annotations

from typing import Optional, Union

from treadle import Tensor

from .._operators import ops

_IntPair = Union[int, tuple[int, int]]


def max_pool2d(
    input: Tensor,
    kernel_size: _IntPair,
    stride: Optional[_IntPair] = None,
    padding: _IntPair = 0,
    dilation: _IntPair = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Union[Tensor, tuple[Tensor, Tensor]]:
    """The largest value under each window; with return_indices, also where in the image it was."""
    steps = kernel_size if stride is None else stride
    operator = ops.max_pool2d_with_indices if return_indices else ops.max_pool2d
    return operator(input, kernel_size, steps, padding, dilation, ceil_mode)


def avg_pool2d(
    input: Tensor,
    kernel_size: _IntPair,
    stride: Optional[_IntPair] = None,
    padding: _IntPair = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Optional[int] = None,
) -> Tensor:
    """The mean value under each window."""
    steps = kernel_size if stride is None else stride
    return ops.avg_pool2d(
        input, kernel_size, steps, padding, ceil_mode, count_include_pad, divisor_override
    )
