"""Dropout: in training, elements are set to zero by chance and the others scaled up to keep the
mean."""

from __future__ import annotations

from treadle import Tensor

from .._operators import ops


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element becomes zero with probability p, the others are divided by 1 - p."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return ops.dropout_(input, p, training) if inplace else ops.dropout(input, p, training)
