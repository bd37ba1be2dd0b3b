"""How a tensor lies on the processes of one dimension of a mesh: cut, whole, or as parts of a sum.

Shard(0)        # each process has some of the rows
Replicate()     # each has all
Partial("sum")  # each has a tensor; their sum is the value
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from typing import Optional


class Placement:
    """One of the ways to lie."""

    def is_shard(self, dim: Optional[int] = None) -> bool:
        """Whether it is cut, and along `dim` where that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether it is whole everywhere."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: Optional[str] = None) -> bool:
        """Whether it is in parts, to be reduced by `reduce_op` where that is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclasses.dataclass(frozen=True, repr=False)
class Shard(Placement):
    """Cut along a dimension, one piece for each process."""

    dim: int

    def __post_init__(self) -> None:
        if not hasattr(type(self.dim), "__index__"):
            raise TypeError(f"Shard: expected dim to be an int, got {type(self.dim).__name__}")

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclasses.dataclass(frozen=True, repr=False)
class _StridedShard(Placement):
    """Cut along a dimension that a later dimension of the mesh cut before this, into
    `split_factor` pieces. Each process has its part of each piece."""

    dim: int
    split_factor: int = dataclasses.field(kw_only=True, default=1)

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclasses.dataclass(frozen=True, repr=False)
class Replicate(Placement):
    """Whole on each process."""

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


@dataclasses.dataclass(frozen=True, repr=False)
class Partial(Placement):
    """In parts of the full shape, one on each process; `reduce_op` makes the value of them."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


def _is_shard_like(placement: Placement) -> bool:
    """Whether a dimension is cut, in either way."""
    return isinstance(placement, (Shard, _StridedShard))
