"""Pipes that change each sample: Mapper, Collator."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Optional, Union

from treadle.utils.data.collate import default_collate

from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.common import validate_input_col


def _with_column(sample: Any, column: Any, value: Any) -> Any:
    """The sample with a value at a column; a sample that cannot be changed is made again."""
    if isinstance(sample, tuple):
        items = list(sample)
        items[column] = value
        return tuple(items)
    sample[column] = value
    return sample


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """fn(sample) for each sample.

    input_col: the index or key of the part that fn is given, or several for its arguments;
    output_col: where in the sample the result goes, -1 for behind its end; without it the result
    takes the place of the first input. Raises ValueError for output_col alone and for one that is a
    list of several.
    """

    def __init__(
        self, datapipe: IterDataPipe, fn: Callable, input_col: Any = None, output_col: Any = None
    ) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("map: expected input_col beside output_col, got none")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError(f"map: expected one output_col, got {list(output_col)}")
            output_col = output_col[0]
        validate_input_col(fn, input_col)
        self.datapipe, self.fn = datapipe, fn
        self.input_col, self.output_col = input_col, output_col

    def _apply_fn(self, data: Any) -> Any:
        column = self.input_col
        if column is None and self.output_col is None:
            return self.fn(data)
        several = isinstance(column, (list, tuple))
        parts = [data[c] for c in column] if several else [data[column]]
        value = self.fn(*parts)
        if self.output_col is None:
            first, *others = column if several else [column]
            data = _with_column(data, first, value)
            if not others:
                return data
            left_out = sorted(others, reverse=True) if isinstance(data, (list, tuple)) else others
            kept = list(data) if isinstance(data, tuple) else data
            for other in left_out:
                del kept[other]
            return tuple(kept) if isinstance(data, tuple) else kept
        if self.output_col == -1:
            if isinstance(data, tuple):
                return (*data, value)
            data.append(value)
            return data
        return _with_column(data, self.output_col, value)

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """collate_fn(sample) for each sample, mostly a batch: tensors of lists of numbers."""

    def __init__(
        self,
        datapipe: IterDataPipe,
        conversion: Optional[Union[Callable, Dict]] = default_collate,
        collate_fn: Optional[Callable] = None,
    ) -> None:
        function = collate_fn if collate_fn is not None else conversion
        if not callable(function):
            raise NotImplementedError(
                f"collate: expected a function, got {type(function).__name__}: conversions by "
                "column are for tables, which do not exist here"
            )
        super().__init__(datapipe, fn=function)


__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]
