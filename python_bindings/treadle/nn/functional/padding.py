"""Padding: values added around a tensor."""

from __future__ import annotations

from typing import Optional, Sequence

from treadle import Tensor

from .._operators import ops


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: Optional[float] = None
) -> Tensor:
    """Add (before, after) values in each dimension, the last one first; negative numbers cut."""
    if mode != "constant":
        raise NotImplementedError(f"pad: expected mode 'constant', got '{mode}'")
    return ops.constant_pad_nd(input, pad, 0 if value is None else value)
