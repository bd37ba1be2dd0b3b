"""Which elements of a dimension each process has: ranges of positions.

    pieces(Shard(0), 5, 3)                       # [[(0, 2)], [(2, 4)], [(4, 5)]]
    pieces(_StridedShard(0, split_factor=2), 4, 2)   # [[(0, 1), (2, 3)], [(1, 2), (3, 4)]]

A dimension is cut as by chunk(): pieces of equal size, except that the last ones may be smaller,
or empty. A dimension that several dimensions of the mesh cut is cut by the first one first.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from treadle.distributed.tensor.placement_types import Placement, Shard, _StridedShard

Ranges = List[Tuple[int, int]]  # (start, end) of each


def total(ranges: Ranges) -> int:
    """How many positions there are."""
    return sum(end - start for start, end in ranges)


def cut(length: int, count: int) -> Ranges:
    """The ranges of `count` pieces."""
    size = -(-length // count) if count else 0
    return [(min(i * size, length), min((i + 1) * size, length)) for i in range(count)]


def pieces(placement: Placement, length: int, count: int) -> List[Ranges]:
    """The positions that each of `count` processes has of a dimension that the placement cuts."""
    if isinstance(placement, _StridedShard):
        found: List[Ranges] = [[] for _ in range(count)]
        for start, end in cut(length, placement.split_factor):
            for mine, (a, b) in zip(found, cut(end - start, count)):
                if b > a:
                    mine.append((start + a, start + b))
        return found
    return [[(a, b)] if b > a else [] for a, b in cut(length, count)]


def within(outer: Ranges, inner: Ranges) -> Ranges:
    """The ranges `inner` of positions that are numbered along `outer`."""
    found, begin = [], 0
    for start, end in outer:
        for a, b in inner:
            low, high = max(a - begin, 0), min(b - begin, end - start)
            if low < high:
                found.append((start + low, start + high))
        begin += end - start
    return sorted(found) if len(inner) < 2 else found


def ranges_of(
    dim: int,
    length: int,
    placements: Sequence[Placement],
    mesh_shape: Sequence[int],
    coordinate: Sequence[int],
) -> Ranges:
    """The positions along a dimension that the process at this place of the mesh has."""
    ranges: Ranges = [(0, length)] if length else []
    for placement, count, place in zip(placements, mesh_shape, coordinate):
        if isinstance(placement, (Shard, _StridedShard)) and placement.dim == dim:
            ranges = within(ranges, pieces(placement, total(ranges), count)[place])
    return ranges


def local_shape(
    shape: Sequence[int],
    placements: Sequence[Placement],
    mesh_shape: Sequence[int],
    coordinate: Optional[Sequence[int]],
) -> Tuple[int, ...]:
    """The shape of what the process at this place of the mesh has; (0,) outside of the mesh."""
    if coordinate is None:
        return (0,)
    return tuple(
        total(ranges_of(dim, length, placements, mesh_shape, coordinate))
        for dim, length in enumerate(shape)
    )


def mesh_dims_of(dim: int, placements: Sequence[Placement]) -> List[int]:
    """The dimensions of the mesh that cut a dimension."""
    return [
        i
        for i, placement in enumerate(placements)
        if isinstance(placement, (Shard, _StridedShard)) and placement.dim == dim
    ]


__all__ = ["Ranges", "cut", "local_shape", "mesh_dims_of", "pieces", "ranges_of", "total", "within"]
