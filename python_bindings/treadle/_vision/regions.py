"""Regions of images, each brought to one size: by sampling (align) or by what lies in it (pool).

A region is a row (image, x1, y1, x2, y2) of `rois`; its window of bins has `pooled_height` rows of
`pooled_width`. Where it is position sensitive (ps), each bin has channels of its own.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Callable, Tuple

from treadle import _C, autograd
from treadle._C import Tensor
from treadle._vision.gathering import rows_of, weighted_rows
from treadle.autograd.grad_mode import enable_grad


def _check(what: str, image: Tensor, rois: Tensor) -> None:
    if rois.dim() != 2 or rois.shape[1] != 5:
        raise RuntimeError(f"{what}: expected rois of shape (K, 5), got {tuple(rois.shape)}")
    if image.dim() != 4:
        raise RuntimeError(
            f"{what}: expected an input of shape (N, C, H, W), got {tuple(image.shape)}"
        )
    if image.dtype != rois.dtype:
        raise RuntimeError(
            f"{what}: expected rois of the input's dtype {image.dtype}, got {rois.dtype}"
        )


def _check_sensitive(what: str, channels: int, bins: int) -> None:
    if channels % bins:
        raise RuntimeError(
            f"{what}: expected channels that are a multiple of the {bins} bins, got {channels}"
        )


def _neighbours(at: Tensor, size: int) -> Tuple[Tensor, Tensor]:
    """The two pixels around each place along one axis, and their weights; both get a last
    dimension of two. Beyond a pixel outside of the image nothing is seen."""
    seen = (at >= -1) & (at <= size)
    at = at.clamp(0, size - 1)
    low = at.floor()
    part = at - low
    pixels = _C.stack([low, (low + 1).clamp(max=size - 1)], -1)
    weights = _C.stack([1 - part, part], -1) * seen[..., None]
    return pixels.long(), weights


def _places(start: Tensor, length: Tensor, bins: int, samples: int) -> Tensor:
    """(K, bins, samples): where a region is sampled along one axis."""
    steps = _C.arange(bins * samples, dtype=start.dtype, device=start.device) + 0.5
    at = start[:, None] + steps * (length / (bins * samples))[:, None]
    return at.reshape(-1, bins, samples)


def _summed(
    image: Tensor,
    image_of: Tensor,
    along_y: Tuple[Tensor, Tensor],
    along_x: Tuple[Tensor, Tensor],
    by_bin: bool,
) -> Tensor:
    """(K, C, PH, PW): the sum of pixels, each by its weight: rows and weights (K, PH, R), columns
    and weights (K, PW, S). `by_bin`: each bin has its own channels, C * PH * PW in all."""
    (rows, weight_y), (columns, weight_x) = along_y, along_x
    height, width = image.shape[2:]
    count, bins_y, bins_x = rows.shape[0], rows.shape[1], columns.shape[1]
    index = image_of[:, None, None, None, None]
    if by_bin:
        # (N, PH, PW, C, H, W): a table with a block of rows for each bin.
        image = image.unflatten(1, (-1, bins_y, bins_x)).permute(0, 2, 3, 1, 4, 5).flatten(0, 2)
        bins = _C.arange(bins_y * bins_x, device=index.device).reshape(1, bins_y, bins_x, 1, 1)
        index = index * (bins_y * bins_x) + bins
    index = (index * height + rows[:, :, None, :, None]) * width + columns[:, None, :, None, :]
    weight = weight_y[:, :, None, :, None] * weight_x[:, None, :, None, :]
    index, weight = (t.flatten(3).flatten(0, 2) for t in (index, weight))
    sums = weighted_rows(rows_of(image), index, weight)
    return sums.reshape(count, bins_y, bins_x, image.shape[1]).permute(0, 3, 1, 2)


def _sampled(image: Tensor, image_of: Tensor, y: Tensor, x: Tensor, by_bin: bool) -> Tensor:
    """(K, C, PH, PW): the mean over samples at y (K, PH, S) and x (K, PW, T)."""
    axes = []
    for at, size in ((y, image.shape[2]), (x, image.shape[3])):
        pixels, weights = _neighbours(at, size)
        axes.append((pixels.flatten(2), weights.flatten(2) / at.shape[2]))
    return _summed(image, image_of, axes[0], axes[1], by_bin)


def _aligned(
    image: Tensor,
    rois: Tensor,
    scale: float,
    bins: Tuple[int, int],
    ratio: int,
    aligned: bool,
    by_bin: bool,
) -> Tensor:
    dtype = image.dtype
    image, rois = (t.to(_C.promote_types(dtype, _C.float32)) for t in (image, rois))
    shift = 0.5 if aligned else 0.0
    x, y, x_end, y_end = (rois[:, 1:] * scale - shift).unbind(1)
    wide, high = x_end - x, y_end - y
    if not aligned:
        wide, high = wide.clamp(min=1.0), high.clamp(min=1.0)
    image_of = rois[:, 0].long()

    def sampled(chosen: Tensor, samples_y: int, samples_x: int) -> Tensor:
        at_y = _places(y[chosen], high[chosen], bins[0], samples_y)
        at_x = _places(x[chosen], wide[chosen], bins[1], samples_x)
        return _sampled(image, image_of[chosen], at_y, at_x, by_bin)

    everything = _C.arange(rois.shape[0], device=rois.device)
    if ratio > 0 or rois.shape[0] == 0:
        result = sampled(everything, max(ratio, 1), max(ratio, 1))
        return result.to(dtype).contiguous()
    # As many samples as a bin has pixels: the regions with the same number go together.
    samples = _C.stack([(high / bins[0]).ceil(), (wide / bins[1]).ceil()], 1).long()
    samples = samples.clamp(min=1)
    kinds, kind_of = samples.unique(dim=0, return_inverse=True)
    chosen = [(kind_of == kind).nonzero().flatten() for kind in range(kinds.shape[0])]
    parts = [sampled(some, *kind) for some, kind in zip(chosen, kinds.tolist())]
    return _C.cat(parts)[_C.cat(chosen).argsort()].to(dtype)


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """(K, C, PH, PW): each bin the mean of bilinear samples."""
    _check("roi_align", input, rois)
    bins = (pooled_height, pooled_width)
    return _aligned(input, rois, spatial_scale, bins, sampling_ratio, aligned, False)


def _mapping(count: int, channels: int, bins: Tuple[int, int], like: Tensor) -> Tensor:
    """(K, C, PH, PW), int32: the channel of the input that each bin is made of."""
    each = _C.arange(channels * bins[0] * bins[1], dtype=_C.int32, device=like.device)
    return each.reshape(channels, *bins).expand(count, -1, -1, -1).contiguous()


def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> Tuple[Tensor, Tensor]:
    """(K, C / (PH * PW), PH, PW), and the channels that its bins are made of."""
    _check("ps_roi_align", input, rois)
    bins = (pooled_height, pooled_width)
    _check_sensitive("ps_roi_align", input.shape[1], bins[0] * bins[1])
    result = _aligned(input, rois, spatial_scale, bins, sampling_ratio, True, True)
    return result, _mapping(rois.shape[0], result.shape[1], bins, input)


def _round(x: Tensor) -> Tensor:
    """To the nearest integer, halves away from zero."""
    return (x.abs() + 0.5).floor() * x.sign()


def _bounds(start: Tensor, length: Tensor, bins: int, size: int) -> Tuple[Tensor, Tensor]:
    """(K, bins), int64: the first pixel of each bin along one axis, and the one after its last."""
    step = (length / bins)[:, None]
    numbers = _C.arange(bins + 1, dtype=start.dtype, device=start.device)
    first = (numbers[:-1] * step).floor() + start[:, None]
    end = (numbers[1:] * step).ceil() + start[:, None]
    return first.clamp(0, size).long(), end.clamp(0, size).long()


def _windows(
    rois: Tensor, scale: float, bins: Tuple[int, int], size: Tuple[int, int], extra: int
) -> Tuple[Tuple[Tensor, Tensor], Tuple[Tensor, Tensor]]:
    """The bounds of bins along y and x, of regions whose sides are `extra` pixels longer than the
    difference of their rounded ends."""
    x, y, x_end, y_end = _round(rois[:, 1:].float() * scale).unbind(1)
    high, wide = ((y_end - y + extra).clamp(min=1), (x_end - x + extra).clamp(min=1))
    return _bounds(y, high, bins[0], size[0]), _bounds(x, wide, bins[1], size[1])


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> Tuple[Tensor, Tensor]:
    """(K, C, PH, PW): the greatest value of each bin, 0 where it has no pixel; and where in the
    channel it is, int32, -1 where there is none."""
    _check("roi_pool", input, rois)
    size = (int(input.shape[2]), int(input.shape[3]))
    bins = (pooled_height, pooled_width)
    (top, bottom), (left, right) = _windows(rois, spatial_scale, bins, size, 1)
    first_row = rois[:, 0].long() * (size[0] * size[1])
    # One row for each bin, those with the most pixels first.
    corner = (top[:, :, None] * size[1] + left[:, None, :]).flatten()
    wide = (right - left)[:, None, :].expand(-1, bins[0], -1).flatten()
    heights, widths = (bottom - top).clamp(min=0), (right - left).clamp(min=0)
    pixels = (heights[:, :, None] * widths[:, None, :]).flatten()
    order = pixels.argsort(descending=True, stable=True)
    image_of = first_row.repeat_interleave(bins[0] * bins[1])[order]
    corner, wide, pixels = corner[order], wide[order].clamp(min=1), pixels[order]
    table = rows_of(input.detach())
    best = table.new_full((order.shape[0], table.shape[1]), -math.inf)
    argmax = _C.full(best.shape, -1, dtype=_C.int32, device=best.device)
    for pixel in range(int(pixels[0]) if pixels.numel() else 0):
        some = slice(int((pixels > pixel).sum()))
        place = corner[some] + pixel // wide[some] * size[1] + pixel % wide[some]
        values = table[image_of[some] + place]
        better = values > best[some]
        best[some] = _C.where(better, values, best[some])
        argmax[some] = _C.where(better, place.int()[:, None], argmax[some])
    argmax = argmax[order.argsort()].reshape(-1, *bins, input.shape[1]).permute(0, 3, 1, 2)
    return _picked(input, rois, argmax), argmax.contiguous()


def _picked(image: Tensor, rois: Tensor, argmax: Tensor) -> Tensor:
    """The values at `argmax`, 0 where there is none."""
    channels, size = image.shape[1], image.shape[2] * image.shape[3]
    channel = _C.arange(channels, device=image.device)
    first = (rois[:, 0].long()[:, None] * channels + channel) * size
    place = first[:, :, None, None] + argmax.clamp(min=0)
    values = image.reshape(-1).index_select(0, place.flatten()).reshape(argmax.shape)
    return values.masked_fill(argmax < 0, 0)


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> Tuple[Tensor, Tensor]:
    """(K, C / (PH * PW), PH, PW): the mean of each bin, 0 where it has no pixel; and the channels
    that the bins are made of."""
    _check("ps_roi_pool", input, rois)
    bins = (pooled_height, pooled_width)
    _check_sensitive("ps_roi_pool", input.shape[1], bins[0] * bins[1])
    size = (int(input.shape[2]) - 1, int(input.shape[3]) - 1)
    (top, bottom), (left, right) = _windows(rois, spatial_scale, bins, size, 0)
    axes = []
    for first, end, last in ((top, bottom, size[0]), (left, right, size[1])):
        length = (end - first)[..., None]
        longest = int(length.max().clamp(min=1)) if length.numel() else 1
        pixels = _C.arange(longest, device=input.device)
        weights = (pixels < length).to(input.dtype) / length.clamp(min=1)
        axes.append(((first[..., None] + pixels).clamp(max=last), weights))
    sums = _summed(input, rois[:, 0].long(), axes[0], axes[1], True)
    return sums, _mapping(rois.shape[0], sums.shape[1], bins, input)


def _derivative(
    operator: Callable[[Tensor], Tensor], grad: Tensor, size: Tuple[int, ...]
) -> Tensor:
    """The derivative of an operator that is linear in the image, so that any image does."""
    with enable_grad():
        image = grad.new_zeros(size).requires_grad_()
        return autograd.grad(operator(image), image, grad)[0]


def roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """The gradient of roi_align's input."""
    window = (spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)
    size = (batch_size, channels, height, width)
    return _derivative(lambda image: roi_align(image, rois, *window), grad, size)


def roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    argmax: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """The gradient of roi_pool's input."""
    size = (batch_size, channels, height, width)
    return _derivative(lambda image: _picked(image, rois, argmax.long()), grad, size)


def ps_roi_align_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """The gradient of ps_roi_align's input."""
    window = (spatial_scale, pooled_height, pooled_width, sampling_ratio)
    size = (batch_size, channels, height, width)
    return _derivative(lambda image: ps_roi_align(image, rois, *window)[0], grad, size)


def ps_roi_pool_backward(
    grad: Tensor,
    rois: Tensor,
    channel_mapping: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Tensor:
    """The gradient of ps_roi_pool's input."""
    window = (spatial_scale, pooled_height, pooled_width)
    size = (batch_size, channels, height, width)
    return _derivative(lambda image: ps_roi_pool(image, rois, *window)[0], grad, size)
