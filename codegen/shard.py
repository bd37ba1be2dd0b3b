"""Shards: the operators, spread over files by a stable hash of their base name, so that a new one
changes one file of each kind.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import zlib
from dataclasses import dataclass

from .library import Library
from .model.entry import Entry, Model


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


def shard_of(name: str, shards: int) -> int:
    # In-place entries written by hand (copy_) stay with their base (copy), where Python binds them
    # together.
    return zlib.crc32(name.rstrip("_").encode()) % shards


def make_shards(model: Model, shards: int, library: Library) -> list[Shard]:
    groups: list[list[tuple[str, tuple[Entry, ...]]]] = [[] for _ in range(shards)]
    for name, entries in sorted(model.by_name.items()):
        groups[shard_of(name, shards)].append((name, entries))
    return [Shard(i, shards, tuple(g), model, library) for i, g in enumerate(groups)]


def alone(name: str, model: Model, library: Library) -> Shard:
    """One base name, as if there were no other."""
    return Shard(0, 1, ((name, model.by_name[name]),), model, library)
