"""Convolution whose kernel reads the input at places that are moved by offsets."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Tuple

from treadle import _C, autograd
from treadle._C import Tensor
from treadle._vision.gathering import rows_of, weighted_rows
from treadle.autograd.grad_mode import enable_grad


def _check(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    out: Tuple[int, int],
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> None:
    taps = weight.shape[2] * weight.shape[3]
    if input.shape[1] != weight.shape[1] * groups or weight.shape[0] % groups:
        raise RuntimeError(
            f"deform_conv2d: expected a weight for {input.shape[1]} channels in {groups} groups, "
            f"got {tuple(weight.shape)}"
        )
    if input.shape[1] % offset_groups:
        raise RuntimeError(
            f"deform_conv2d: expected channels that are a multiple of the {offset_groups} groups "
            f"of offsets, got {input.shape[1]}"
        )
    if min(out) <= 0:
        raise RuntimeError(
            f"deform_conv2d: expected an output of at least one pixel, got {out[0]} by {out[1]}"
        )
    moved = (input.shape[0], 2 * offset_groups * taps, *out)
    if tuple(offset.shape) != moved:
        raise RuntimeError(
            f"deform_conv2d: expected an offset of shape {moved}, got {tuple(offset.shape)}"
        )
    masked = (input.shape[0], offset_groups * taps, *out)
    if use_mask and tuple(mask.shape) != masked:
        raise RuntimeError(
            f"deform_conv2d: expected a mask of shape {masked}, got {tuple(mask.shape)}"
        )


def _neighbours(at: Tensor, size: int) -> Tuple[Tensor, Tensor]:
    """The two pixels around each place along one axis and their weights, which are 0 for a pixel
    outside; both get a last dimension of two."""
    low = at.detach().floor()
    part = at - low
    pixels = _C.stack([low, low + 1], -1)
    inside = (pixels >= 0) & (pixels < size)
    return pixels.clamp(0, size - 1).long(), _C.stack([1 - part, part], -1) * inside


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """(N, C_out, OH, OW). `offset` has (y, x) for each tap of the kernel and each group of
    channels; `mask` a factor."""
    for name, tensor in (("input", input), ("weight", weight), ("offset", offset)):
        if tensor.dim() != 4:
            raise RuntimeError(
                f"deform_conv2d: expected {name} of four dimensions, got {tuple(tensor.shape)}"
            )
    batch, _, height, width = input.shape
    high, wide = weight.shape[2:]
    out_h = (height + 2 * pad_h - dilation_h * (high - 1) - 1) // stride_h + 1
    out_w = (width + 2 * pad_w - dilation_w * (wide - 1) - 1) // stride_w + 1
    _check(input, weight, offset, mask, (out_h, out_w), groups, offset_groups, use_mask)
    # (N, groups of offsets, taps, OH, OW) from here on.
    moved = offset.reshape(batch, offset_groups, high * wide, 2, out_h, out_w)

    def steps(number: int, by: int) -> Tensor:
        return _C.arange(number, dtype=offset.dtype, device=offset.device) * by

    tap_y = steps(high, dilation_h)[:, None].expand(high, wide).reshape(-1, 1, 1)
    tap_x = steps(wide, dilation_w)[None, :].expand(high, wide).reshape(-1, 1, 1)
    y = moved[:, :, :, 0] + (steps(out_h, stride_h)[:, None] - pad_h + tap_y)
    x = moved[:, :, :, 1] + (steps(out_w, stride_w)[None, :] - pad_w + tap_x)
    rows, weight_y = _neighbours(y, height)
    columns, weight_x = _neighbours(x, width)
    part = _C.arange(batch * offset_groups, device=offset.device)
    first = part.reshape(batch, offset_groups, 1, 1, 1, 1, 1) * height
    index = (first + rows[..., :, None]) * width + columns[..., None, :]
    factor = weight_y[..., :, None] * weight_x[..., None, :]
    if use_mask:
        factor = factor * mask.reshape(y.shape)[..., None, None]
    # A group of offsets reads the channels that are its own.
    table = rows_of(input.reshape(batch * offset_groups, -1, height, width))
    read = weighted_rows(table, index.reshape(-1, 4), factor.reshape(-1, 4))
    read = read.reshape(batch, offset_groups, high * wide, out_h * out_w, -1)
    read = read.permute(0, 1, 4, 2, 3).reshape(batch, groups, -1, out_h * out_w)
    result = weight.reshape(groups, weight.shape[0] // groups, -1) @ read
    result = result.reshape(batch, -1, out_h, out_w)
    return result + bias.reshape(1, -1, 1, 1)


def deform_conv2d_backward(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    *geometry: int,
    **named: int,
) -> Tuple[Tensor, ...]:
    """The gradients of the five tensors."""
    with enable_grad():
        tensors = [t.detach().requires_grad_() for t in (input, weight, offset, mask, bias)]
        result = deform_conv2d(*tensors, *geometry, **named)  # type: ignore[arg-type]
        found = autograd.grad(result, tensors, grad, allow_unused=True)
    return tuple(_C.zeros_like(t) if g is None else g for t, g in zip(tensors, found))
