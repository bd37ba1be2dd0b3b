"""Batcher: lists of samples."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from .._batching import Batching
from ..datapipe import MapDataPipe, functional_datapipe


@functional_datapipe("batch")
class BatcherMapDataPipe(Batching, MapDataPipe):
    __doc__ = f"{Batching.__doc__} IndexError beyond the last."

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"batch: expected an index below {len(self)}, got {index}")
        first = index * self.batch_size
        last = min(first + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(first, last)])


__all__ = ["BatcherMapDataPipe"]
