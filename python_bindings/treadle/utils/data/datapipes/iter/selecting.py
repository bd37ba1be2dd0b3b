"""Filter: the samples that fulfil a condition."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Iterator

from treadle import _C
from treadle._C import Tensor

from ..datapipe import IterDataPipe, functional_datapipe
from ..utils.common import validate_input_col


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The samples for which filter_fn is True, given the sample or the columns that input_col says.
    Raises ValueError for a result that is no bool."""

    def __init__(self, datapipe: IterDataPipe, filter_fn: Callable, input_col: Any = None) -> None:
        validate_input_col(filter_fn, input_col)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def _is_taken(self, data: Any) -> bool:
        column = self.input_col
        if column is None:
            taken = self.filter_fn(data)
        elif isinstance(column, (list, tuple)):
            taken = self.filter_fn(*(data[c] for c in column))
        else:
            taken = self.filter_fn(data[column])
        if isinstance(taken, Tensor) and taken.dtype == _C.bool and taken.dim() == 0:
            return bool(taken)
        if type(taken).__name__ not in ("bool", "bool_"):
            raise ValueError(
                f"filter: expected filter_fn to return a bool, got {type(taken).__name__}"
            )
        return bool(taken)

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            if self._is_taken(data):
                yield data


__all__ = ["FilterIterDataPipe"]
