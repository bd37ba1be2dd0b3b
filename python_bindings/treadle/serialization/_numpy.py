"""NumPy's arrays and numbers in a checkpoint that is read with `weights_only=False`.

NumPy's own functions for this believe what they are told about sizes, and arrays of objects hold
anything; here element types are plain ones and sizes are those of the bytes.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import re
from typing import Any

import numpy

from treadle.serialization._safe_globals import Entry, expect

_PLAIN_TYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|c8|c16|[SU][0-9]{1,6})")
_entries: dict[str, Entry] = {}


def _dtype(text: Any, align: Any = False, copy: Any = True) -> numpy.dtype:
    expect(
        type(text) is str and _PLAIN_TYPE.fullmatch(text) is not None,
        f"expected a plain element type of NumPy, got {text!r}",
    )
    return numpy.dtype(text, False, True)  # a copy, because its state follows


def _set_dtype_state(dtype: numpy.dtype, state: Any) -> None:
    sized = dtype.kind in "SU"
    expect(
        type(state) is tuple
        and len(state) == 8
        and state[0] == 3
        and state[1] in ("<", ">", "|", "=")
        and state[2:5] == (None, None, None)
        and state[5] == (dtype.itemsize if sized else -1)
        and (sized or state[6] == -1)
        and type(state[6]) is int
        and abs(state[6]) <= 16,
        "expected the state of a plain element type of NumPy",
    )
    dtype.__setstate__((*state[:7], 0))  # type: ignore[attr-defined]


def _plain_dtype(dtype: Any) -> numpy.dtype:
    expect(
        isinstance(dtype, numpy.dtype) and not dtype.hasobject and dtype.names is None,
        "expected an array of plain elements",
    )
    return dtype


def _new_array(cls: Any, shape: Any, code: Any) -> numpy.ndarray:
    expect(cls is numpy.ndarray, "expected a plain array of NumPy")
    return numpy.empty((0,), numpy.int8)


def _set_array_state(array: numpy.ndarray, state: Any) -> None:
    expect(type(state) is tuple and len(state) == 5, "expected the state of an array")
    version, shape, dtype, is_fortran, content = state
    dtype = _plain_dtype(dtype)
    expect(
        type(shape) is tuple
        and len(shape) <= 32
        and all(type(n) is int and n >= 0 for n in shape)
        and type(content) in (bytes, bytearray)
        and math.prod(shape) * dtype.itemsize == len(content),
        "expected as many bytes as the array has",
    )
    array.__setstate__((1, shape, dtype, bool(is_fortran), bytes(content)))  # type: ignore[arg-type]


def _array_of_bytes(content: Any, dtype: Any, shape: Any, order: Any) -> numpy.ndarray:
    """How pickles of protocol 5 write an array."""
    array = _new_array(numpy.ndarray, None, None)
    expect(order in ("C", "F"), "expected rows or columns as the order of an array")
    _set_array_state(array, (1, shape, dtype, order == "F", content))
    return array


def _scalar(dtype: Any, content: Any = b"") -> Any:
    dtype = _plain_dtype(dtype)
    expect(
        type(content) in (bytes, bytearray) and len(content) == dtype.itemsize > 0,
        "expected as many bytes as a number has",
    )
    return numpy.frombuffer(bytes(content), dtype)[0]


def entries() -> dict[str, Entry]:
    """By the names that NumPy's pickles have."""
    if not _entries:
        _entries["numpy.dtype"] = Entry(numpy.dtype, call=_dtype)
        _entries["numpy.ndarray"] = Entry(numpy.ndarray, state=_set_array_state)
        for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            _entries[f"{module}.scalar"] = Entry(_scalar, call=_scalar)
            _entries[f"{module}._reconstruct"] = Entry(_new_array, call=_new_array)
        for module in ("numpy.core.numeric", "numpy._core.numeric"):
            _entries[f"{module}._frombuffer"] = Entry(_array_of_bytes, call=_array_of_bytes)
    return _entries


def state_entry(cls: type) -> Any:
    """How a value that one of these functions made is given its state; None for other classes."""
    if issubclass(cls, numpy.dtype):
        return Entry(cls, state=_set_dtype_state)
    return entries()["numpy.ndarray"] if cls is numpy.ndarray else None
