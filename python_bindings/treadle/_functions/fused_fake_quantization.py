"""Observing, choosing a scale, and rounding with it, in one function: that of training with
quantization in view.

Example:

    y = treadle.fused_moving_avg_obs_fake_quant(
        x, on, on, low, high, scale, zero_point, 0.01, 0, 255, -1)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import List, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle._functions.older import (
    fake_quantize_per_channel_affine,
    fake_quantize_per_tensor_affine,
)
from treadle._functions.overridable import make_overridable
from treadle.autograd.grad_mode import no_grad

# Below this scale its inverse has too few digits in float32.
_SMALLEST_SCALE = 6.1e-5


def _choose(low: float, high: float, first: int, last: int, symmetric: bool) -> Tuple[float, int]:
    """The scale and the zero point for numbers from `low` to `high`, in steps `first` to `last`.
    Zero is one of the steps; it is the middle one where the range is symmetric and has both signs.
    """
    if not math.isfinite(high - low):
        return high - low, min(max(0, first), last)
    if low < 0 < high and symmetric:
        below, above = (last - first) // 2 + 1, (last - first) // 2
        widest = max(abs(low) / below, abs(high) / above)
        low, high = -widest * below, widest * above
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (last - first)
    if scale == 0.0 or math.isinf(1 / scale):
        scale = 0.1
    if scale < _SMALLEST_SCALE:
        factor = _SMALLEST_SCALE / scale
        low, high, scale = low * factor, high * factor, _SMALLEST_SCALE
    by_low, by_high = first - low / scale, last - high / scale
    error_by_low = abs(first) + abs(low / scale)
    error_by_high = abs(last) + abs(high / scale)
    middle = by_low if error_by_low < error_by_high else by_high
    if low < 0 < high and symmetric:
        middle = (first + last) / 2
    return scale, min(max(round(middle), first), last)


def _observe(x: Tensor, low: Tensor, high: Tensor, weight: float) -> None:
    """Move averages of the smallest and largest numbers toward those of a tensor, by rows of x
    where the averages have a dimension."""
    if x.numel() == 0:
        return
    now = _C.aminmax(x) if x.dim() == 1 else _C.aminmax(x, dim=1)
    for average, seen in zip((low, high), now):
        if average.shape != seen.shape:
            average.resize_(seen.shape).copy_(seen)
        elif average.numel():
            moved = average + weight * (seen - average)
            average.copy_(_C.where(average.isinf(), seen, moved))


def fused_moving_avg_obs_fake_quant(
    input: Tensor,
    observer_on: Tensor,
    fake_quant_on: Tensor,
    running_min: Tensor,
    running_max: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    averaging_const: float,
    quant_min: int,
    quant_max: int,
    ch_axis: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> Tensor:
    """Move the averages `running_min` and `running_max` toward the ends of the input, compute
    `scale` and `zero_point` from them, and round the input with those. The two switches are tensors
    of one integer. With `per_row_fake_quant` there is a scale for each part of dimension `ch_axis`.
    The gradient is that of the identity, and zero for numbers beyond the ends."""
    if observer_on.item():
        with no_grad():
            x = input.detach().float()
            rows = x.transpose(0, ch_axis).flatten(1) if per_row_fake_quant else x.flatten()
            _observe(rows, running_min, running_max, averaging_const)
            lows: List[float] = running_min.reshape(-1).tolist()
            highs: List[float] = running_max.reshape(-1).tolist()
            chosen = [
                _choose(low, high, quant_min, quant_max, symmetric_quant)
                for low, high in zip(lows, highs)
            ]
            for kept, values in zip((scale, zero_point), zip(*chosen)):
                made = _C.tensor(values, dtype=kept.dtype, device=kept.device)
                kept.resize_(made.shape).copy_(made)
    if not fake_quant_on.item() or input.numel() == 0:
        return input
    if per_row_fake_quant:
        return fake_quantize_per_channel_affine(
            input, scale, zero_point, ch_axis, quant_min, quant_max
        )
    return fake_quantize_per_tensor_affine(input, scale, zero_point, quant_min, quant_max)


make_overridable(__name__, ["fused_moving_avg_obs_fake_quant"])
