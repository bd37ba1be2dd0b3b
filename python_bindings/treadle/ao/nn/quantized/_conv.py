"""Convolutions on quantized tensors."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Union

from treadle import _C, nn
from treadle._C import Tensor
from treadle.ao.nn import intrinsic as nni
from treadle.ao.nn import qat
from treadle.ao.nn._weights import (
    WithState,
    check_shape,
    check_type,
    empty_weight,
    qparams,
)
from treadle.ao.nn.intrinsic import qat as intrinsic_qat
from treadle.ao.nn.quantized._from_float import quantized_parameters
from treadle.nn._tuples import tuple_of

_Ints = Union[int, Sequence[int]]


def even_padding(mod: Any) -> Tuple[int, ...]:
    """The padding of a float convolution, as numbers; ValueError where the sides differ."""
    sides = mod._sides()
    before, after = sides[0::2][::-1], sides[1::2][::-1]
    if before != after:
        raise ValueError(
            f"{type(mod).__name__}: expected the same padding on both sides, got {before} and "
            f"{after}"
        )
    return tuple(before)


class _Conv(WithState):
    """A convolution of a quantized input (N, in_channels, *sizes) of quint8 with a quantized weight
    (out_channels, in_channels / groups, *kernel_size); the result is quantized with `scale` and
    `zero_point`. The bias is float32. ValueError for a padding_mode other than zeros, a padding by
    name, and channels that the groups do not divide."""

    _numbers = (("scale", float), ("zero_point", int))
    _kept = ("weight", "bias")
    _attributes = {"weight": "_weight", "bias": "_bias"}
    _dims = 0
    _relu = False
    _float_classes: Tuple[type, ...] = ()

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _Ints,
        stride: _Ints = 1,
        padding: _Ints = 0,
        dilation: _Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
    ) -> None:
        super().__init__()
        if padding_mode != "zeros":
            raise ValueError(
                f"{type(self).__name__}: expected padding_mode='zeros', got {padding_mode!r}"
            )
        if isinstance(padding, str):
            raise ValueError(f"{type(self).__name__}: expected padding as numbers, got {padding!r}")
        if groups <= 0 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{type(self).__name__}: expected channels in multiples of groups > 0, got "
                f"{in_channels}, {out_channels} and groups={groups}"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size: Any = tuple_of(kernel_size, self._dims)
        self.stride: Any = tuple_of(stride, self._dims)
        self.padding: Any = tuple_of(padding, self._dims)
        self.dilation: Any = tuple_of(dilation, self._dims)
        self.padding_mode = padding_mode
        self.scale, self.zero_point = 1.0, 0
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        weight = empty_weight(type(self).__name__, shape, _C.qint8, (_C.qint8,))
        self.set_weight_bias(weight, _C.zeros(out_channels) if bias else None)

    def forward(self, input: Tensor) -> Tensor:
        """The result, quantized."""
        return _C._quantized_convolution(
            input,
            self._weight,
            self._bias,
            list(self.stride),
            list(self.padding),
            list(self.dilation),
            self.groups,
            self.scale,
            self.zero_point,
            self._relu,
        )

    def set_weight_bias(self, w: Tensor, b: Optional[Tensor]) -> None:
        """Put in a quantized weight, and a bias (out_channels,) or None."""
        self._weight = w
        self._bias = None if b is None else b.detach()

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._weight

    def bias(self) -> Optional[Tensor]:
        """The bias; None where there is none."""
        return self._bias

    def _weight_bias(self) -> Tuple[Tensor, Optional[Tensor]]:
        return self._weight, self._bias

    def _check_loaded(self, name: str, value: Any) -> None:
        if name == "weight":
            check_shape(value, self._weight.shape)
            if value.dtype != _C.qint8:
                raise ValueError(f"expected a tensor of {_C.qint8}, got {value.dtype}")
        elif value is not None:
            check_shape(value, (self.out_channels,))

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """From a prepared layer, by what its observers saw. With `use_precomputed_fake_quant` the
        scale of a weight is the one from training, not computed anew."""
        check_type(f"nn.quantized.{cls.__name__}.from_float", mod, cls._float_classes)
        scale, zero_point = qparams(mod)
        layer, weight, bias = quantized_parameters(cls.__name__, mod, use_precomputed_fake_quant)
        made = cls(
            layer.in_channels,
            layer.out_channels,
            layer.kernel_size,
            layer.stride,
            even_padding(layer),
            layer.dilation,
            layer.groups,
            padding_mode=layer.padding_mode,
        )
        made.set_weight_bias(weight, bias)
        made.scale, made.zero_point = scale, zero_point
        return made.train(mod.training)

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def extra_repr(self) -> str:
        """The sizes and the scale."""
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, scale={self.scale}, zero_point={self.zero_point}"
        )
        if any(self.padding):
            text += f", padding={self.padding}"
        if any(step != 1 for step in self.dilation):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self._bias is not None else text + ", bias=False"


class Conv1d(_Conv):
    """A convolution over one dimension of a quantized tensor; see nn.Conv1d."""

    _dims = 1
    _float_classes = (nn.Conv1d, qat.Conv1d, intrinsic_qat.ConvBn1d)


class Conv2d(_Conv):
    """A convolution over two dimensions of a quantized tensor; see nn.Conv2d."""

    _dims = 2
    _float_classes = (nn.Conv2d, qat.Conv2d, intrinsic_qat.ConvBn2d)


class Conv3d(_Conv):
    """A convolution over three dimensions of a quantized tensor; see nn.Conv3d."""

    _dims = 3
    _float_classes = (nn.Conv3d, qat.Conv3d, intrinsic_qat.ConvBn3d)


class ConvReLU1d(Conv1d):
    """relu() of a convolution, as Conv1d."""

    _relu = True
    _float_classes = (nni.ConvReLU1d, intrinsic_qat.ConvBnReLU1d)  # type: ignore[assignment]


class ConvReLU2d(Conv2d):
    """relu() of a convolution, as Conv2d."""

    _relu = True
    _float_classes = (  # type: ignore[assignment]
        nni.ConvReLU2d,
        intrinsic_qat.ConvReLU2d,
        intrinsic_qat.ConvBnReLU2d,
    )


class ConvReLU3d(Conv3d):
    """relu() of a convolution, as Conv3d."""

    _relu = True
    _float_classes = (  # type: ignore[assignment]
        nni.ConvReLU3d,
        intrinsic_qat.ConvReLU3d,
        intrinsic_qat.ConvBnReLU3d,
    )
