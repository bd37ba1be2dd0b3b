"""Convolution layers over one, two and three dimensions, and their transposes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Optional, Sequence, Union

from treadle import _C
from treadle._C import Tensor

from .. import functional as F
from .. import init
from .._tuples import tuple_of
from ..parameter import Parameter
from .module import Module

_Ints = Union[int, tuple[int, ...]]


class _ConvNd(Module):
    """The common part of the layers; `_dims` is how many dimensions they go over."""

    _dims = 0

    def _set_up(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _Ints,
        stride: _Ints,
        padding: Union[str, _Ints],
        dilation: _Ints,
        transposed: bool,
        output_padding: _Ints,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
        dtype: Any,
    ) -> None:
        dims = self._dims
        self._check(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = tuple_of(kernel_size, dims)
        self.stride = tuple_of(stride, dims)
        self.padding = padding if isinstance(padding, str) else tuple_of(padding, dims)
        self.dilation = tuple_of(dilation, dims)
        self.transposed = transposed
        self.output_padding = tuple_of(output_padding, dims)
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._sides()
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        size = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(_C.empty(size, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(_C.empty((out_channels,), device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _check(
        self,
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
            if padding == "same" and any(step != 1 for step in tuple_of(stride, self._dims)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        modes = ("zeros", "reflect", "replicate", "circular")
        if padding_mode not in modes:
            raise ValueError(
                f"padding_mode must be one of {modes}, but got padding_mode='{padding_mode}'"
            )

    def _sides(self) -> list[int]:
        """The padding before and after each dimension, the last one first, as F.pad takes it."""
        sides: list[int] = []
        padding: Any = self.padding
        for d in reversed(range(self._dims)):
            if padding == "valid":
                before = after = 0
            elif padding == "same":
                total = self.dilation[d] * (self.kernel_size[d] - 1)
                before, after = total // 2, total - total // 2
            else:
                before = after = padding[d]
            sides += [before, after]
        return sides

    def reset_parameters(self) -> None:
        """Weight and bias uniform within 1 / sqrt(in_channels / groups * kernel elements)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        zeros, ones = (0,) * self._dims, (1,) * self._dims
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != zeros:
            text += f", padding={self.padding}"
        if self.dilation != ones:
            text += f", dilation={self.dilation}"
        if self.output_padding != zeros:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        if "padding_mode" not in self.__dict__:
            self.padding_mode = "zeros"


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _Ints,
        stride: _Ints = 1,
        padding: Union[str, _Ints] = 0,
        dilation: _Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._set_up(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            False,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        convolve = (F.conv1d, F.conv2d, F.conv3d)[self._dims - 1]
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Conv):
    """Convolution of lines ([N,] in_channels, L) into ([N,] out_channels, L')."""

    _dims = 1


class Conv2d(_Conv):
    """Convolution of images ([N,] in_channels, H, W) into ([N,] out_channels, H', W')."""

    _dims = 2


class Conv3d(_Conv):
    """Convolution of volumes ([N,] in_channels, D, H, W) into ([N,] out_channels, D', H', W')."""

    _dims = 3


class _ConvTransposeNd(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _Ints,
        stride: _Ints = 1,
        padding: _Ints = 0,
        output_padding: _Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: _Ints = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__()
        self._set_up(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            True,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Optional[Sequence[int]] = None) -> Tensor:
        convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self._dims - 1]
        return convolve(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )

    def _output_padding(
        self, input: Tensor, output_size: Optional[Sequence[int]]
    ) -> tuple[int, ...]:
        """The output padding that gives `output_size`."""
        if output_size is None:
            return self.output_padding
        dims, sizes = self._dims, list(output_size)
        has_batch = input.dim() == dims + 2
        if len(sizes) == (dims + 2 if has_batch else dims + 1):
            sizes = sizes[-dims:]
        if len(sizes) != dims:
            raise ValueError(
                f"{type(self).__name__}: for {input.dim()}D input, output_size must have {dims} "
                f"or {dims + 1 + has_batch} elements (got {len(sizes)})"
            )
        extra = []
        for d in range(dims):
            least = (
                (input.shape[d - dims] - 1) * self.stride[d]
                - 2 * self.padding[d]
                + self.dilation[d] * (self.kernel_size[d] - 1)
                + 1
            )
            if not least <= sizes[d] <= least + self.stride[d] - 1:
                raise ValueError(
                    f"requested an output size of {sizes}, but dimension {d} must be from {least} "
                    f"to {least + self.stride[d] - 1} for an input of {tuple(input.shape[2:])}"
                )
            extra.append(sizes[d] - least)
        return tuple(extra)


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of a convolution of lines; `output_size` at a call chooses among the lengths
    that the convolution would take to the input's."""

    _dims = 1


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of a convolution of images; `output_size` as in ConvTranspose1d."""

    _dims = 2


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of a convolution of volumes; `output_size` as in ConvTranspose1d."""

    _dims = 3
