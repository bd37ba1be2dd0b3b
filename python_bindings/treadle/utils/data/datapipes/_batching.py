"""The common part of batches, whether samples are gone through or asked for by a key."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Type

from .datapipe import DataChunk


class Batching:
    """Lists of batch_size samples of a pipe, the last of what is left unless drop_last; each goes
    through wrapper_class. Raises AssertionError for batch_size below 1."""

    def __init__(
        self,
        datapipe: Any,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Type[DataChunk] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError(f"batch: expected batch_size > 0, got {batch_size}")
        super().__init__()
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __len__(self) -> int:
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
