"""Integers as vectors with a single one."""

from __future__ import annotations

from treadle import Tensor

from .._operators import ops


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """For each integer k, zeros with a one at place k; num_classes -1 takes the largest + 1."""
    return ops.one_hot(input, num_classes)
