"""Making a batch of samples: tensors are stacked, numbers become a tensor, and containers are gone
through.

default_collate([(1, {"x": 2.0}), (3, {"x": 4.0})])   # [tensor([1, 3]), {'x': tensor([2., 4.])}]
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, Callable

import numpy as np
import treadle
from treadle import Tensor


def default_convert(data: Any) -> Any:
    """A single sample: NumPy arrays in it become tensors, the rest stays."""
    if isinstance(data, Tensor) or isinstance(data, (str, bytes)):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        if data.dtype.kind in "SUO":
            return data
        return treadle.as_tensor(data)
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
    """A batch of samples that all have the same structure."""
    first = batch[0]
    kind = _kind(first)
    if kind is not None:
        return kind(batch)
    if isinstance(first, Mapping):
        return _like_mapping(
            first, {key: default_collate([sample[key] for sample in batch]) for key in first}
        )
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(list(part)) for part in _transposed(batch)))
    if isinstance(first, tuple):
        return [default_collate(list(part)) for part in _transposed(batch)]
    if isinstance(first, Sequence):
        return _like_sequence(first, [default_collate(list(part)) for part in _transposed(batch)])
    raise TypeError(
        "default_collate: expected batches of tensors, numpy arrays, numbers, dicts or lists, got "
        f"{type(first).__name__}"
    )


def _kind(first: Any) -> Any:
    """How samples that hold no other samples are put together."""
    if isinstance(first, Tensor):
        return _stack_tensors
    if isinstance(first, (np.ndarray, np.generic)):
        return _stack_arrays
    if isinstance(first, (bool, int)):
        return treadle.tensor
    if isinstance(first, float):
        return _floats
    if isinstance(first, (str, bytes)):
        return lambda batch: batch
    return None


def _stack_tensors(batch: list) -> Tensor:
    return treadle.stack(batch, 0)


def _stack_arrays(batch: list) -> Any:
    if batch[0].dtype.kind in "SUO":
        raise TypeError(
            f"default_collate: expected numpy arrays of numbers, got one of dtype {batch[0].dtype}"
        )
    return treadle.as_tensor(np.stack(batch))


def _floats(batch: list) -> Tensor:
    return treadle.tensor(batch, dtype=treadle.float64)


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


CollateFunction = Callable[[list], Any]
