"""Convolution layers."""

from __future__ import annotations

import math
from typing import Any, Union

import treadle
from treadle import Tensor

from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

_IntPair = Union[int, tuple[int, int]]


def _pair(value: _IntPair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


class Conv2d(Module):
    """Convolution of images (N, in_channels, H, W) into (N, out_channels, H', W')."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _IntPair,
        stride: _IntPair = 1,
        padding: Union[str, _IntPair] = 0,
        dilation: _IntPair = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._check(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _pair(kernel_size)
        self.stride = _pair(stride)
        self.padding = padding if isinstance(padding, str) else _pair(padding)
        self.dilation = _pair(dilation)
        self.groups = groups
        self.padding_mode = padding_mode
        self.transposed = False
        self.output_padding = (0, 0)
        size = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(treadle.empty(size, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(treadle.empty((out_channels,), device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    @staticmethod
    def _check(
        in_channels: int,
        out_channels: int,
        stride: Any,
        padding: Any,
        groups: int,
        padding_mode: str,
    ) -> None:
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of 'same', 'valid'"
                )
            if padding == "same" and any(step != 1 for step in _pair(stride)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode != "zeros":
            raise ValueError(f"Conv2d: expected padding_mode 'zeros', got '{padding_mode}'")

    def reset_parameters(self) -> None:
        """Weight and bias uniform within 1 / sqrt(in_channels / groups * kernel elements)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.conv2d(
            input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != (0, 0):
            text += f", padding={self.padding}"
        if self.dilation != (1, 1):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text
