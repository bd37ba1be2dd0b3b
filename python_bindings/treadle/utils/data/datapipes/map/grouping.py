"""Batcher: lists of samples."""

from __future__ import annotations

from typing import Any, Type

from ..datapipe import DataChunk, MapDataPipe, functional_datapipe


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Lists of batch_size samples, the last of what is left unless drop_last. Raises
    AssertionError for batch_size below 1, IndexError beyond the last."""

    def __init__(
        self,
        datapipe: MapDataPipe,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Type[DataChunk] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError(f"batch: expected batch_size > 0, got {batch_size}")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"batch: expected an index below {len(self)}, got {index}")
        first = index * self.batch_size
        last = min(first + self.batch_size, len(self.datapipe))  # type: ignore[arg-type]
        return self.wrapper_class([self.datapipe[i] for i in range(first, last)])

    def __len__(self) -> int:
        whole, rest = divmod(len(self.datapipe), self.batch_size)  # type: ignore[arg-type]
        return whole + (rest > 0 and not self.drop_last)


__all__ = ["BatcherMapDataPipe"]
