"""Tensors of few bits with a scale for each block: numbers of 4 bits and back, MXFP8 and NVFP4.

Example:

    values, scales = to_nvfp4(x)                 # x (m, k): values (m, k / 2), scales (m, k / 16)
    unpack_float4(values)                        # the numbers without their scales, (m, k)

`nn.functional.scaled_mm` multiplies such tensors.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Tuple

from treadle import _C
from treadle._C import Tensor


def unpack_float4(packed: Tensor) -> Tensor:
    """The numbers of a float4_e2m1fn_x2 tensor (..., k), exactly, as float32 (..., 2 k).

    The first number of an element is in its lower half. TypeError for another dtype, RuntimeError
    for a tensor without dimensions.
    """
    if packed.dtype != _C.float4_e2m1fn_x2:
        raise TypeError(f"unpack_float4: expected dtype float4_e2m1fn_x2, got {packed.dtype}")
    return _C._float4_values(packed.view(_C.uint8))


def pack_float4(values: Tensor) -> Tensor:
    """The nearest of the numbers 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives, (..., k / 2).

    values: (..., k) of a floating dtype, rounded to float32 first. Half way between two numbers the
    one with an even mantissa is taken (0, 1, 2 or 4). Larger values become 6 or -6; NaN becomes 6,
    since the type has none. TypeError for another dtype, RuntimeError for an odd k.
    """
    if not values.is_floating_point() or values.dtype == _C.float4_e2m1fn_x2:
        raise TypeError(
            f"pack_float4: expected a floating dtype of one number an element, got {values.dtype}"
        )
    return _C._float4_bytes(values.detach().to(_C.float32)).view(_C.float4_e2m1fn_x2)


def _blocks(op: str, x: Tensor, length: int) -> Tensor:
    if x.dim() == 0 or x.shape[-1] % length:
        raise RuntimeError(
            f"{op}: expected a last dimension in multiples of {length}, got shape {tuple(x.shape)}"
        )
    return x.detach().to(_C.float32).unflatten(-1, (-1, length))


def to_mxfp8(x: Tensor) -> Tuple[Tensor, Tensor]:
    """MXFP8: `x` (..., k) as float8_e4m3fn (..., k) and scales of float8_e8m0fnu (..., k / 32).

    A scale is the power of two by which the largest magnitude of its block is between 256 and 512;
    magnitudes above 448 become 448, and so do infinities. RuntimeError for a k that is no multiple
    of 32.
    """
    blocks = _blocks("to_mxfp8", x, 32)
    largest = blocks.abs().amax(-1).clamp(max=2.0**127)
    # frexp: largest is within 2^(exponent - 1) and 2^exponent.
    exponent = (_C.frexp(largest).exponent - 9).clamp(-127, 127)
    scales = _C.ldexp(_C.ones_like(largest), exponent)
    values = (blocks / scales[..., None]).flatten(-2)
    return values.to(_C.float8_e4m3fn), scales.to(_C.float8_e8m0fnu)


def to_nvfp4(x: Tensor) -> Tuple[Tensor, Tensor]:
    """NVFP4: `x` (..., k) as float4_e2m1fn_x2 (..., k / 2), and scales (..., k / 16).

    A scale is a sixth of the largest magnitude of its block, as float8_e4m3fn. For a tensor whose
    magnitudes are not between 0.1 and 2688, divide it by one number first, and multiply the
    product by it.
    RuntimeError for a k that is no multiple of 16.
    """
    blocks = _blocks("to_nvfp4", x, 16)
    scales = (blocks.abs().amax(-1) / 6).to(_C.float8_e4m3fn)
    step = scales.to(_C.float32)
    values = blocks / _C.where(step > 0, step, _C.ones_like(step))[..., None]
    return pack_float4(values.flatten(-2)), scales
