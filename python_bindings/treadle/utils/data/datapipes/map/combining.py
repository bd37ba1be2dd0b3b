"""Pipes that join others: Concater, Zipper."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Tuple

from ..datapipe import MapDataPipe, functional_datapipe


def _pipes(name: str, datapipes: Tuple[Any, ...]) -> Tuple[Any, ...]:
    if not datapipes:
        raise ValueError(f"{name}: expected pipes, got none")
    for pipe in datapipes:
        if not isinstance(pipe, MapDataPipe):
            raise TypeError(f"{name}: expected pipes that take keys, got {type(pipe).__name__}")
    return datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """The samples of all pipes, numbered one pipe after the other."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        self.datapipes = _pipes("concat", datapipes)

    def __getitem__(self, index: int) -> Any:
        rest = index
        for pipe in self.datapipes:
            if rest < len(pipe):
                return pipe[rest]
            rest -= len(pipe)
        raise IndexError(f"concat: expected an index below {len(self)}, got {index}")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of the samples of all pipes by one key."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        self.datapipes = _pipes("zip", datapipes)

    def __getitem__(self, index: Any) -> Tuple[Any, ...]:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


__all__ = ["ConcaterMapDataPipe", "ZipperMapDataPipe"]
