"""Dtypes that a program registers: a size, and functions that convert elements."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

from treadle import _C
from treadle._C import Tensor
from treadle._rebuild import dtype_named


def register_dtype(
    name: str,
    *,
    itemsize: int,
    from_bits: Callable[[Tensor], Tensor],
    to_bits: Callable[[Tensor], Tensor],
    computed: _C.dtype = _C.float32,
) -> _C.dtype:
    """Register a floating dtype for as long as the program, and return it.

    An element has `itemsize` bytes, 1, 2, 4 or 8. `from_bits` receives elements as a tensor of one
    dimension of uint8, int16, int32 or int64, and returns their values in the dtype `computed`,
    float32 or float64. `to_bits` receives values and returns the bits of the elements nearest to
    them. All operators take tensors of the dtype: they compute in `computed` and round the results.

    ValueError for a name that is taken or no identifier, for another size and another dtype to
    compute in; TypeError for conversions that are no functions; RuntimeError for more than eight
    dtypes of a size.
    """
    for what, function in (("from_bits", from_bits), ("to_bits", to_bits)):
        if not callable(function):
            raise TypeError(
                f"register_dtype: expected a function for {what}, got {_kind(function)}"
            )
    if not isinstance(computed, _C.dtype):
        raise TypeError(f"register_dtype: expected a dtype for computed, got {_kind(computed)}")
    return _C._library_new_dtype(name, itemsize, computed, from_bits, to_bits)


def registered_dtype(name: str) -> _C.dtype:
    """The dtype of this name that register_dtype() or a library in C++ registered. RuntimeError if
    there is none."""
    return dtype_named(name)


def _kind(value: Any) -> str:
    return type(value).__name__
