"""Layers that change the shape only."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Sequence

from treadle._C import Tensor

from .module import Module


class Flatten(Module):
    """Make the dimensions from start_dim to end_dim one; by default all but the batch."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split one dimension into several, of the given sizes."""

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"Unflatten: expected dim to be an int, got {type(dim).__name__}")
        if not all(isinstance(size, int) for size in unflattened_size):
            raise TypeError(f"Unflatten: expected unflattened_size of ints, got {unflattened_size}")
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
