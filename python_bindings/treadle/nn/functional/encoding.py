"""Integers as vectors with a single one."""

from __future__ import annotations

import treadle
from treadle import Tensor


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """For each integer k, a vector of zeros with a one at place k; num_classes -1 takes the largest
    + 1."""
    if input.dtype != treadle.int64:
        raise RuntimeError(f"one_hot: expected an input of dtype treadle.int64, got {input.dtype}")
    if input.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError(
                "one_hot: expected num_classes > 0 for an empty input, got " + str(num_classes)
            )
        return treadle.zeros((*input.shape, num_classes), dtype=treadle.int64)
    smallest, largest = int(input.min().item()), int(input.max().item())
    if smallest < 0:
        raise RuntimeError(f"one_hot: expected classes >= 0, got {smallest}")
    if num_classes == -1:
        num_classes = largest + 1
    elif largest >= num_classes:
        raise RuntimeError(
            f"one_hot: expected classes below num_classes = {num_classes}, got {largest}"
        )
    places = treadle.arange(num_classes, dtype=treadle.int64, device=input.device)
    return (input.unsqueeze(-1) == places).to(treadle.int64)
