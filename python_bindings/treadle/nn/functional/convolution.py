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
    if isinstance(padding, str):
        stride, dilation = _pair(stride), _pair(dilation)
        if padding == "valid":
            padding = (0, 0)
        elif padding == "same":
            return _conv2d_same(input, weight, bias, stride, dilation, groups)
        else:
            raise ValueError(
                f"conv2d: expected padding to be 'same', 'valid' or integers, got '{padding}'"
            )
    return ops.conv2d(input, weight, bias, _pair(stride), _pair(padding), _pair(dilation), groups)


def _pair(value: _IntPair) -> _IntPair:
    return (value, value) if isinstance(value, int) else value


def _conv2d_same(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    stride: tuple,
    dilation: tuple,
    groups: int,
) -> Tensor:
    """Pad so that the output is as large as the input; an odd total puts the extra row at the
    end."""
    if any(step != 1 for step in stride):
        raise RuntimeError(
            f"conv2d: expected stride 1 with padding='same', got stride = {tuple(stride)}"
        )
    if weight.dim() != 4:
        raise RuntimeError(
            f"conv2d: expected a weight of 4 dimensions, got size {tuple(weight.shape)}"
        )
    totals = [d * (size - 1) for d, size in zip(dilation, weight.shape[2:])]
    if all(total % 2 == 0 for total in totals):
        padding = tuple(total // 2 for total in totals)
        return ops.conv2d(input, weight, bias, stride, padding, dilation, groups)
    # Pad by the larger half on both sides, then drop the row or column that is too many.
    padding = tuple((total + 1) // 2 for total in totals)
    padded = ops.conv2d(input, weight, bias, stride, padding, dilation, groups)
    for dim, total in zip((-2, -1), totals):
        if total % 2:
            padded = padded.narrow(dim, 1, padded.shape[dim] - 1)
    return padded
