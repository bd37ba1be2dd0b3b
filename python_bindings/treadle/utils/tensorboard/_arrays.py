"""The values given to a SummaryWriter, as NumPy arrays: numbers, lists, tensors, pictures in any
order of their dimensions.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import numpy as np

from treadle import _C
from treadle._C import Tensor


def to_array(value: Any) -> np.ndarray:
    """The numbers of a tensor, array, list or number; at least one dimension."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        if value.dtype == _C.bfloat16:
            value = value.to(_C.float32)
        value = value.numpy(force=True)
    if isinstance(value, str):
        raise NotImplementedError(f"expected numbers, a tensor or an array, got the text {value!r}")
    return np.atleast_1d(np.asarray(value))


def to_number(value: Any) -> float:
    """The one number of a tensor or array, or the number itself."""
    array = to_array(value)
    if array.size != 1:
        raise AssertionError(f"scalar should be 0D, got shape {array.shape}")
    return float(array.reshape(()))


def picture(value: Any, dataformats: str) -> np.ndarray:
    """Pictures as (height, width, 3 or 4) of uint8. `dataformats` says what the dimensions of
    `value` are: N pictures (laid out in a grid), C channels, H rows, W columns."""
    array = to_array(value)
    dims = dataformats.upper()
    if len(set(dims)) != len(dims) or not {"H", "W"} <= set(dims) <= set("NCHW"):
        raise AssertionError(
            f"add_image: expected each of H and W once, and perhaps N and C, in dataformats, got "
            f"{dataformats!r}"
        )
    if array.ndim != len(dims):
        raise AssertionError(
            f"add_image: expected as many dimensions as in dataformats {dataformats!r}, got shape "
            f"{array.shape}"
        )
    for missing in (d for d in "NCHW" if d not in dims):
        array, dims = array[..., None], dims + missing
    array = array.transpose([dims.index(d) for d in "NHWC"])
    if array.shape[3] == 1:
        array = np.repeat(array, 3, 3)
    return _as_bytes(_grid(array))


def _grid(pictures: np.ndarray, columns: int = 8) -> np.ndarray:
    count, height, width, channels = pictures.shape
    columns = min(count, columns)
    rows = -(-count // columns)
    space = np.zeros((rows * columns, height, width, channels), pictures.dtype)
    space[:count] = pictures
    space = space.reshape(rows, columns, height, width, channels).transpose(0, 2, 1, 3, 4)
    return space.reshape(rows * height, columns * width, channels)


def _as_bytes(array: np.ndarray) -> np.ndarray:
    """Numbers from 0 to 1 become bytes; bytes stay."""
    if array.dtype == np.uint8:
        return array
    return (array.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
