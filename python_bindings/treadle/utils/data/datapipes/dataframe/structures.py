"""A batch of tables."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator

from ..datapipe import DataChunk
from . import dataframe_wrapper as tables


class DataChunkDF(DataChunk):
    """Tables in a list: its samples are their rows."""

    def __iter__(self) -> Iterator[Any]:
        for frame in self.items:
            yield from tables.iterate(frame)

    def __len__(self) -> int:
        return sum(tables.get_len(frame) for frame in self.items)


__all__ = ["DataChunkDF"]
