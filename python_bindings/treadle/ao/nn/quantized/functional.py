"""Functions of quantized tensors.

Example:

    y = functional.linear(x, weight, bias, scale=0.1, zero_point=128)

Those with the argument `scale` choose the scale of their result; others keep that of the argument.
Functions that have no kernel for quantized tensors compute on the floats, and quantize the result.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Callable, List, Optional, Sequence, Union

from treadle import _C, _names
from treadle._C import Tensor
from treadle._tensor.type_info import iinfo
from treadle.nn import functional as F  # noqa: N812
from treadle.nn._tuples import tuple_of

_Ints = Union[int, Sequence[int]]


def in_float(
    function: Callable[..., Tensor],
    x: Tensor,
    scale: Optional[float] = None,
    zero_point: Optional[int] = None,
) -> Tensor:
    """function() of the floats of `x`, quantized with the given scale, or with that of `x`."""
    scale = x.q_scale() if scale is None else float(scale)
    zero_point = x.q_zero_point() if zero_point is None else int(zero_point)
    return _C.quantize_per_tensor(function(x.dequantize()), scale, zero_point, x.dtype)


def _check(what: str, x: Any) -> None:
    if not isinstance(x, Tensor) or not x.is_quantized:
        got = f"a tensor of {x.dtype}" if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"nn.quantized.functional.{what}: expected a quantized tensor, got {got}")


def linear(
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    scale: Optional[float] = None,
    zero_point: Optional[int] = None,
) -> Tensor:
    """input (*, in) @ weight (out, in).T + bias (out), with the given scale or the input's."""
    _check("linear", input)
    scale = input.q_scale() if scale is None else scale
    zero_point = input.q_zero_point() if zero_point is None else zero_point
    return _C._quantized_linear(input, weight, bias, scale, zero_point, False)


def _convolution(dims: int) -> Callable[..., Tensor]:
    def conv(
        input: Tensor,
        weight: Tensor,
        bias: Optional[Tensor],
        stride: _Ints = 1,
        padding: _Ints = 0,
        dilation: _Ints = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        scale: float = 1.0,
        zero_point: int = 0,
        dtype: Any = _C.quint8,
    ) -> Tensor:
        name = f"conv{dims}d"
        _check(name, input)
        if padding_mode != "zeros":
            raise NotImplementedError(
                f"nn.quantized.functional.{name}: expected padding_mode='zeros', got "
                f"{padding_mode!r}"
            )
        if (input.dtype, weight.dtype, dtype) != (_C.quint8, _C.qint8, _C.quint8):
            raise NotImplementedError(
                f"nn.quantized.functional.{name}: expected an input of {_C.quint8}, a weight of "
                f"{_C.qint8} and a result of {_C.quint8}, got {input.dtype}, {weight.dtype} and "
                f"{dtype}"
            )
        lists: List[List[int]] = [
            list(tuple_of(value, dims)) for value in (stride, padding, dilation)
        ]
        return _C._quantized_convolution(
            input, weight, bias, *lists, groups, scale, zero_point, False
        )

    conv.__name__ = conv.__qualname__ = f"conv{dims}d"
    conv.__doc__ = (
        f"The convolution over {dims} dimensions of an input (N, C, *sizes) of quint8 with a "
        "weight (out, C / groups, *kernel) of qint8; NotImplementedError for other dtypes."
    )
    return conv


conv1d, conv2d, conv3d = (_convolution(dims) for dims in (1, 2, 3))


def _keeps_scale(name: str) -> Callable[..., Tensor]:
    """A function that takes quantized tensors as they are."""
    function = getattr(F, name)

    def call(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        _check(name, input)
        return function(input, *args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"nn.functional.{name}() of a quantized tensor; ValueError for another."
    return call


avg_pool2d = _keeps_scale("avg_pool2d")
avg_pool3d = _keeps_scale("avg_pool3d")
adaptive_avg_pool2d = _keeps_scale("adaptive_avg_pool2d")
adaptive_avg_pool3d = _keeps_scale("adaptive_avg_pool3d")
max_pool1d = _keeps_scale("max_pool1d")
max_pool2d = _keeps_scale("max_pool2d")
interpolate = _keeps_scale("interpolate")
hardtanh = _keeps_scale("hardtanh")


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Optional[bool] = None,
) -> Tensor:
    """interpolate(), by its older name."""
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate() between corners that stay where they are, by its older name."""
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate() by the nearest element, by its older name."""
    return interpolate(input, size, scale_factor, mode="nearest")


def clamp(input: Tensor, min_: float, max_: float) -> Tensor:
    """The numbers between `min_` and `max_`, with the scale of the input."""
    _check("clamp", input)
    return _C.clamp(input, min_, max_)


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """The numbers above `threshold`, and `value` for others, with the scale of the input."""
    _check("threshold", input)
    return in_float(lambda x: F.threshold(x, threshold, value), input)


def celu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """nn.functional.celu(), with a scale of its own."""
    _check("celu", input)
    return in_float(lambda x: F.celu(x, alpha), input, scale, zero_point)


def elu(input: Tensor, scale: float, zero_point: int, alpha: float = 1.0) -> Tensor:
    """nn.functional.elu(), with a scale of its own."""
    _check("elu", input)
    return in_float(lambda x: F.elu(x, alpha), input, scale, zero_point)


def leaky_relu(
    input: Tensor,
    negative_slope: float = 0.01,
    inplace: bool = False,
    scale: Optional[float] = None,
    zero_point: Optional[int] = None,
) -> Tensor:
    """nn.functional.leaky_relu(), with the given scale or the input's. ValueError where it would
    write another scale into the input."""
    _check("leaky_relu", input)
    if inplace and scale is not None:
        raise ValueError("leaky_relu: expected no scale together with inplace=True, got both")
    result = in_float(lambda x: F.leaky_relu(x, negative_slope), input, scale, zero_point)
    return input.copy_(result) if inplace else result


def hardswish(input: Tensor, scale: float, zero_point: int) -> Tensor:
    """nn.functional.hardswish(), with a scale of its own."""
    _check("hardswish", input)
    return in_float(F.hardswish, input, scale, zero_point)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """nn.functional.hardsigmoid(): with the scale 1 / 256, in place with that of the input."""
    _check("hardsigmoid", input)
    if inplace:
        return input.copy_(in_float(F.hardsigmoid, input))
    return in_float(F.hardsigmoid, input, 1 / 256, 0)


def add_scalar(input: Tensor, number: float) -> Tensor:
    """input + number, with the input's scale and a zero point that is moved. Where that would leave
    the range of the dtype, the scale is larger. ValueError for a number that is not finite."""
    _check_number("add_scalar", number)
    low, high = _ends(input.dtype)
    scale, zero_point = input.q_scale(), input.q_zero_point()
    least, most = (scale * (end - zero_point) + number for end in (low, high))
    moved = zero_point - round(number / scale)
    if low <= moved <= high:
        new_scale = scale
    else:
        # Zero, which a scale must have, comes into the range.
        least, most = min(least, 0.0), max(most, 0.0)
        new_scale = (most - least) / (high - low)
        moved = min(max(low - round(least / new_scale), low), high)
    return _C.quantize_per_tensor(input.dequantize() + number, new_scale, moved, input.dtype)


def mul_scalar(input: Tensor, number: float) -> Tensor:
    """input * number, with the input's scale times |number|; with a negative number the range is
    turned round. ValueError for a number that is not finite."""
    _check_number("mul_scalar", number)
    low, high = _ends(input.dtype)
    scale, zero_point = input.q_scale(), input.q_zero_point()
    if number == 0:
        return _C.quantize_per_tensor(input.dequantize() * 0.0, 1.0, zero_point, input.dtype)
    if number < 0:
        zero_point = high + low - zero_point
    return _C.quantize_per_tensor(
        input.dequantize() * number, scale * abs(number), zero_point, input.dtype
    )


def _check_number(what: str, number: float) -> None:
    if not math.isfinite(number):
        raise ValueError(f"nn.quantized.functional.{what}: expected a finite number, got {number}")


def _ends(dtype: Any) -> Any:
    info = iinfo(dtype)
    return info.min, info.max


def matmul(x: Tensor, y: Tensor, scale: float, zero_point: int) -> Tensor:
    """x @ y, with a scale of its own."""
    _check("matmul", x)
    _check("matmul", y)
    return in_float(lambda a: a @ y.dequantize(), x, scale, zero_point)


__getattr__ = _names.attributes_of(__name__)
