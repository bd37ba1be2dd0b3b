"""make_tensor: a tensor of random values, of any dtype, for tests."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

from treadle import _C
from treadle._C import Tensor


def make_tensor(
    *shape: Union[int, Sequence[int]],
    dtype: _C.dtype,
    device: Any = "cpu",
    low: Optional[float] = None,
    high: Optional[float] = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
) -> Tensor:
    """Values spread evenly over [low, high), by default [-9, 9) ([0, 10) without sign, both for
    bool).

    With noncontiguous the elements do not touch in memory; with exclude_zero none of them is zero.
    """
    size = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(shape)
    low, high = _bounds(dtype, low, high)
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"`requires_grad=True` is not supported for the dtype {dtype}")
    values = _values(size, dtype, low, high)
    if noncontiguous and values.numel() > 1:
        spaced = _C.stack((values, values), -1)
        values = spaced.select(-1, 0)
    if exclude_zero:
        one = _C.ones((), dtype=dtype)
        values.copy_(_C.where(values == 0, one, values))
    if str(device) != "cpu":
        values = values.to(device)
    if requires_grad:
        values.requires_grad = True
    return values


def _bounds(dtype: _C.dtype, low: Optional[float], high: Optional[float]) -> tuple[float, float]:
    usual = (-9, 9)
    if dtype == _C.bool:
        usual = (0, 2)
    elif not dtype.is_signed:
        usual = (0, 10)
    low = usual[0] if low is None else low
    high = usual[1] if high is None else high
    if not low < high:
        raise ValueError(f"make_tensor: expected low < high, got low = {low}, high = {high}")
    return low, high


def _values(size: tuple, dtype: _C.dtype, low: float, high: float) -> Tensor:
    if dtype.is_complex:
        part = _C.float64 if dtype == _C.complex128 else _C.float32
        real = _C.empty(size, dtype=part).uniform_(low, high)
        imaginary = _C.empty(size, dtype=part).uniform_(low, high)
        return (real.to(dtype) + imaginary.to(dtype) * 1j).to(dtype)
    if dtype.is_floating_point:
        return _C.empty(size, dtype=_C.float64).uniform_(low, high).to(dtype)
    return _C.randint(int(low), int(high), size, dtype=_C.int64).to(dtype)
