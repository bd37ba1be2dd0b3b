"""Shards: the operators, spread over files by a stable hash of their base name, so that a new one
changes one file of each kind, and seldom a second file of kernels.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from .library import Library
from .model.entry import Entry, Model
from .operators import elements

ROOM_STEP = 8  # loops


@dataclass(frozen=True)
class Shard:
    """The operators of one shard: base names in order, each with all its overloads."""

    index: int
    count: int
    groups: tuple[tuple[str, tuple[Entry, ...]], ...]
    model: Model
    library: Library

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(e for _, group in self.groups for e in group)


def _hash(name: str) -> int:
    # In-place entries written by hand (copy_) stay with their base (copy), where Python binds them
    # together.
    return zlib.crc32(name.rstrip("_").encode())


Placement = Mapping[str, int]
"""The shard of each base name."""


def by_hash(model: Model, shards: int) -> Placement:
    return {name: _hash(name) % shards for name in model.by_name}


def by_kernels(model: Model, shards: int) -> Placement:
    """Shards that take about the same time to compile: hashing with bounded loads.

    The time grows with the loops of the kernels. The names with most of them go first, each to the
    shard of its hash or to the next one that has room. So a new name moves few others, if any. The
    room grows in steps: where it grows, many names move.
    """
    loops = {
        name: sum(elements.loop_count(e) for e in group) for name, group in model.by_name.items()
    }
    mean = sum(loops.values()) / shards
    room = [math.ceil(mean * 9 / 8 / ROOM_STEP) * ROOM_STEP] * shards
    found = {}
    for name in sorted(loops, key=lambda name: (-loops[name], _hash(name), name)):
        first = _hash(name) % shards
        order = [*range(first, shards), *range(first)]
        emptiest = max(order, key=lambda k: room[k])
        shard = next((k for k in order if room[k] >= loops[name]), emptiest)
        room[shard] -= loops[name]
        found[name] = shard
    return found


def make_shards(model: Model, shards: int, library: Library, placement: Placement) -> list[Shard]:
    groups: list[list[tuple[str, tuple[Entry, ...]]]] = [[] for _ in range(shards)]
    for name, entries in sorted(model.by_name.items()):
        groups[placement[name]].append((name, entries))
    return [Shard(i, shards, tuple(g), model, library) for i, g in enumerate(groups)]


def alone(name: str, model: Model, library: Library) -> Shard:
    """One base name, as if there were no other."""
    return Shard(0, 1, ((name, model.by_name[name]),), model, library)
