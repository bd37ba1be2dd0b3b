"""Padding: values added around a tensor."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Optional, Sequence

from treadle._C import Tensor

from .._operators import ops


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: Optional[float] = None
) -> Tensor:
    """Add (before, after) values in each dimension, the last one first; negative numbers cut.

    Modes: constant, reflect (mirrored at the ends), replicate (the ends repeated), circular.
    """
    if mode == "constant":  # any number, complex ones too
        return ops.constant_pad_nd(input, pad, 0 if value is None else value)
    return ops.pad(input, pad, mode, value)
