"""Hooks that send gradients as unsigned bytes, with a scale and a zero point for each process."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.distributed._grad_bucket import GradBucket
from treadle.futures import Future

from ._stages import Stages

_LARGEST = 255
_LEAST_SCALE = 2.0**-23  # the spacing of float32 at 1


def _places(like: Tensor, group: Any) -> List[Tensor]:
    return [_C.empty_like(like) for _ in range(dist.get_world_size(group))]


def _quantized_mean(rows: Tensor, length: int, group: Any) -> Future[Tensor]:
    """The mean over the processes of the first `length` elements of `rows` (channels, elements).
    Each row has a scale and a zero point of its own."""
    low = rows.amin(1, keepdim=True).clamp(max=0.0)
    high = rows.amax(1, keepdim=True).clamp(min=0.0)
    scale = ((high - low) / _LARGEST).clamp(min=_LEAST_SCALE).to(_C.float32)
    zero = (-low / scale).round().clamp(0, _LARGEST)
    mine = _C.stack([scale, zero])
    everybody = _places(mine, group)
    work = dist.all_gather(everybody, mine, group=group, async_op=True)
    assert work is not None

    def compute() -> Tensor:
        work.wait()
        small = ((rows / scale).round() + zero).clamp(0, _LARGEST).to(_C.uint8)
        pieces = _places(small, group)
        dist.all_gather(pieces, small, group=group)
        total = _C.zeros_like(rows)
        for (their_scale, their_zero), piece in zip(everybody, pieces):
            total += their_scale * (piece.to(_C.float32) - their_zero)
        return (total / len(pieces)).reshape(-1)[:length]

    return Stages(compute)


def quantization_pertensor_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """The mean of gradients that are rounded to 256 values between the least and the greatest."""
    flat = bucket.buffer()
    return _quantized_mean(flat.view(1, -1), flat.numel(), process_group)


def quantization_perchannel_hook(
    process_group: Any, bucket: GradBucket, bucket_size: int = 512
) -> Future[Tensor]:
    """As quantization_pertensor_hook(), with 256 values for every `bucket_size` elements."""
    flat = bucket.buffer()
    padding = -flat.numel() % bucket_size
    rows = _C.cat([flat, flat.new_zeros(padding)]).view(-1, bucket_size)
    return _quantized_mean(rows, flat.numel(), process_group)


__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]
