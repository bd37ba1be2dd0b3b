"""Making a batch of samples: tensors are stacked, numbers become a tensor, and containers are gone
through.

default_collate([(1, {"x": 2.0}), (3, {"x": 4.0})])   # [tensor([1, 3]), {'x': tensor([2., 4.])}]

A type of samples of one's own is added to the table, or given to collate() in one:

default_collate_fn_map[Graph] = lambda batch, *, collate_fn_map=None: Graph.union(batch)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, Callable, Optional, Union

import numpy as np

from treadle import _C
from treadle._C import Tensor

CollateFunction = Callable[[list], Any]
# From a type, or several, to a function of a batch of it and, by name, such a table.
CollateTable = dict[Union[type, tuple[type, ...]], Callable]


def default_convert(data: Any) -> Any:
    """A single sample: NumPy arrays in it become tensors, the rest stays."""
    if isinstance(data, Tensor) or isinstance(data, (str, bytes)):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        if data.dtype.kind in "SUO":
            return data
        return _C.as_tensor(data)
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(item) for item in data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, Sequence):
        return _like_sequence(data, [default_convert(item) for item in data])
    return data


def default_collate(batch: list) -> Any:
    """A batch of samples that all have the same structure. TypeError for a type that is not in the
    table, RuntimeError for lists of several lengths."""
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: list, *, collate_fn_map: Optional[CollateTable] = None) -> Any:
    """A batch of samples, each put together by the function that the table has for its type."""
    first = batch[0]
    function = _function_for(first, collate_fn_map or {})
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def part(samples: Any) -> Any:
        return collate(list(samples), collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _like_mapping(first, {key: part(sample[key] for sample in batch) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(part, _transposed(batch)))
    if isinstance(first, tuple):
        return [part(samples) for samples in _transposed(batch)]
    if isinstance(first, Sequence):
        return _like_sequence(first, [part(samples) for samples in _transposed(batch)])
    raise TypeError(
        "default_collate: expected batches of tensors, numpy arrays, numbers, dicts or lists, got "
        f"{type(first).__name__}"
    )


def _function_for(first: Any, table: CollateTable) -> Optional[Callable]:
    if type(first) in table:
        return table[type(first)]
    return next((f for kind, f in table.items() if isinstance(first, kind)), None)


# ---- the table -----------------------------------------------------------------------------------


def collate_tensor_fn(batch: list, *, collate_fn_map: Optional[CollateTable] = None) -> Tensor:
    """The tensors, stacked."""
    return _C.stack(batch, 0)


def collate_numpy_array_fn(batch: list, *, collate_fn_map: Optional[CollateTable] = None) -> Tensor:
    """The arrays, stacked to a tensor."""
    if batch[0].dtype.kind in "SUO":
        raise TypeError(
            f"default_collate: expected numpy arrays of numbers, got one of dtype {batch[0].dtype}"
        )
    return _C.as_tensor(np.stack(batch))


def collate_numpy_scalar_fn(
    batch: list, *, collate_fn_map: Optional[CollateTable] = None
) -> Tensor:
    """NumPy's numbers, in their dtype."""
    return _C.as_tensor(np.stack(batch))


def collate_float_fn(batch: list, *, collate_fn_map: Optional[CollateTable] = None) -> Tensor:
    """Python's floats have 64 bits."""
    return _C.tensor(batch, dtype=_C.float64)


def collate_int_fn(batch: list, *, collate_fn_map: Optional[CollateTable] = None) -> Tensor:
    """Integers, or bools."""
    return _C.tensor(batch)


def collate_str_fn(batch: list, *, collate_fn_map: Optional[CollateTable] = None) -> list:
    """Texts stay a list."""
    return batch


default_collate_fn_map: CollateTable = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


# ---- containers ----------------------------------------------------------------------------------


def _transposed(batch: list) -> list:
    lengths = {len(sample) for sample in batch}
    if len(lengths) > 1:
        raise RuntimeError("each element in list of batch should be of equal size")
    return list(zip(*batch))


def _like_mapping(example: Any, values: dict) -> Any:
    """A mapping of the example's type, if it can be copied and filled."""
    try:
        if isinstance(example, MutableMapping):
            result = copy.copy(example)
            result.update(values)
            return result
        return type(example)(values)
    except TypeError:
        return values


def _like_sequence(example: Any, values: list) -> Any:
    try:
        if isinstance(example, MutableSequence) and len(example) == len(values):
            result = copy.copy(example)
            for place, value in enumerate(values):
                result[place] = value
            return result
        return type(example)(values)
    except TypeError:
        return values
