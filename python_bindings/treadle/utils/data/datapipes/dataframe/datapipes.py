"""Pipes that make tables of rows, and rows of tables."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import random
from typing import Any, Callable, Iterator, List, Optional

from ..datapipe import DFIterDataPipe, IterDataPipe, functional_datapipe
from . import dataframe_wrapper as tables


class _Of:
    def __init__(self, source_datapipe: Any) -> None:
        super().__init__()
        self.source_datapipe = source_datapipe


@functional_datapipe("_dataframes_as_tuples")
class DataFramesAsTuplesPipe(_Of, IterDataPipe):
    """The rows of tables, as tuples."""

    def __iter__(self) -> Iterator[Any]:
        for frame in self.source_datapipe:
            yield from tables.iterate(frame)


@functional_datapipe("_dataframes_per_row")
class PerRowDataFramesPipe(_Of, DFIterDataPipe):
    """Tables of one row each."""

    def __iter__(self) -> Iterator[Any]:
        for frame in self.source_datapipe:
            for place in range(tables.get_len(frame)):
                yield tables.get_item(frame, place)


@functional_datapipe("_dataframes_concat")
class ConcatDataFramesPipe(DFIterDataPipe):
    """Each `batch` tables as one."""

    def __init__(self, source_datapipe: Any, batch: int = 3) -> None:
        self.source_datapipe, self.n_batch = source_datapipe, batch

    def __iter__(self) -> Iterator[Any]:
        waiting: List[Any] = []
        for frame in self.source_datapipe:
            waiting.append(frame)
            if len(waiting) == self.n_batch:
                yield tables.concat(waiting)
                waiting = []
        if waiting:
            yield tables.concat(waiting)


def _regrouped(rows: List[Any], sizes: List[int]) -> Iterator[Any]:
    """Rows as tables of these sizes; what is left is one more."""
    begin = 0
    for size in [*sizes, len(rows)]:
        part = rows[begin : begin + size]
        begin += size
        if part:
            yield tables.concat(part)


@functional_datapipe("_dataframes_shuffle")
class ShuffleDataFramesPipe(_Of, DFIterDataPipe):
    """The rows of all tables in a random order of Python's, in tables of the size of the first."""

    def __iter__(self) -> Iterator[Any]:
        rows: List[Any] = []
        size = 0
        for frame in self.source_datapipe:
            count = tables.get_len(frame)
            size = size or count
            rows += [tables.get_item(frame, place) for place in range(count)]
        random.shuffle(rows)
        yield from _regrouped(rows, [size] * (len(rows) // max(size, 1)))


@functional_datapipe("_dataframes_filter")
class FilterDataFramesPipe(DFIterDataPipe):
    """The rows for which filter_fn, given a tuple, is true, in tables of the size of the first."""

    def __init__(self, source_datapipe: Any, filter_fn: Callable[[Any], Any]) -> None:
        self.source_datapipe, self.filter_fn = source_datapipe, filter_fn

    def __iter__(self) -> Iterator[Any]:
        rows: List[Any] = []
        size = 0
        for frame in self.source_datapipe:
            size = size or tables.get_len(frame)
            for place, row in enumerate(tables.iterate(frame)):
                if self.filter_fn(row):
                    rows.append(tables.get_item(frame, place))
        yield from _regrouped(rows, [size] * (len(rows) // max(size, 1)))


@functional_datapipe("_to_dataframes_pipe")
class ExampleAggregateAsDataFrames(DFIterDataPipe):
    """Tables of dataframe_size samples, which are rows. columns: their names."""

    def __init__(
        self, source_datapipe: Any, dataframe_size: int = 10, columns: Optional[List[str]] = None
    ) -> None:
        self.source_datapipe, self.columns = source_datapipe, columns
        self.dataframe_size = dataframe_size

    def __iter__(self) -> Iterator[Any]:
        rows: List[Any] = []
        for row in self.source_datapipe:
            rows.append(row)
            if len(rows) == self.dataframe_size:
                yield tables.create_dataframe(rows, self.columns)
                rows = []
        if rows:
            yield tables.create_dataframe(rows, self.columns)


__all__ = [
    "ConcatDataFramesPipe", "DataFramesAsTuplesPipe", "ExampleAggregateAsDataFrames",
    "FilterDataFramesPipe", "PerRowDataFramesPipe", "ShuffleDataFramesPipe",
]  # fmt: skip
