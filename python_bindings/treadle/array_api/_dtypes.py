"""Dtypes and what becomes what: astype, can_cast, isdtype, result_type, finfo, iinfo.

The standard promotes by dtype alone, while the operators let a 0-dim tensor take the dtype of one
that has dimensions, as a number does. `together` stands between the two: it gives the arguments of
a function one dtype before the operator sees them.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
from functools import reduce
from typing import Any, NamedTuple, Tuple, Union

from treadle import _C
from treadle._C import Tensor
from treadle._C import dtype as Dtype
from treadle._tensor.type_info import finfo as _finfo
from treadle._tensor.type_info import iinfo as _iinfo

Number = Union[builtins.bool, int, float, complex]
Array = Union[Tensor, Number]
Kind = Union[str, Dtype, Tuple[Any, ...]]

_SIGNED = (_C.int8, _C.int16, _C.int32, _C.int64)
_UNSIGNED = (_C.uint8, _C.uint16, _C.uint32, _C.uint64)
_KINDS = {
    "bool": (_C.bool,),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": (_C.float32, _C.float64, _C.float16, _C.bfloat16),
    "complex floating": (_C.complex64, _C.complex128),
}
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def isdtype(dtype: Dtype, kind: Kind) -> builtins.bool:
    """Whether `dtype` is of a kind: a dtype, the name of a kind, or a tuple of those."""
    if not isinstance(dtype, Dtype):
        raise TypeError(f"isdtype: expected a dtype, got {dtype!r}")
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, Dtype):
        return dtype == kind
    if kind not in _KINDS:
        raise ValueError(f"isdtype: expected a dtype or one of {tuple(_KINDS)}, got {kind!r}")
    return dtype in _KINDS[kind]


def _with_number(dtype: Dtype, number: Number) -> Dtype:
    """The dtype of an array of `dtype` together with a number."""
    if isinstance(number, builtins.bool) or dtype.is_complex:
        return dtype
    if isinstance(number, int):
        return _C.int64 if dtype == _C.bool else dtype
    floating = dtype if dtype.is_floating_point else _C.get_default_dtype()
    return floating.to_complex() if isinstance(number, complex) else floating


def result_type(*arrays_and_dtypes: Union[Array, Dtype]) -> Dtype:
    """The dtype of what an operation on all of these gives."""
    dtypes: list[Any] = [v.dtype if isinstance(v, Tensor) else v for v in arrays_and_dtypes]
    numbers = [v for v in dtypes if isinstance(v, (int, float, complex))]
    dtypes = [v for v in dtypes if not isinstance(v, (int, float, complex))]
    if not dtypes:
        raise ValueError("result_type: expected at least one array or dtype, got none")
    for v in dtypes:
        if not isinstance(v, Dtype):
            raise TypeError(f"result_type: expected arrays, dtypes and numbers, got {v!r}")
    common: Dtype = reduce(_C.promote_types, dtypes)
    for number in numbers:
        common = _with_number(common, number)
    return common


def together(name: str, *values: Array) -> Tuple[Tensor, ...]:
    """The values as arrays of one dtype; at least one of them is an array."""
    first = next((v for v in values if isinstance(v, Tensor)), None)
    if first is None:
        raise TypeError(f"{name}: expected at least one array, got {values!r}")
    if builtins.all(isinstance(v, Tensor) and v.dtype == first.dtype for v in values):
        return values  # type: ignore[return-value]
    for v in values:
        if not isinstance(v, (Tensor, int, float, complex)):
            raise TypeError(f"{name}: expected arrays and numbers, got {v!r}")
    dtype = result_type(*values)
    return tuple(
        v.to(dtype) if isinstance(v, Tensor) else _C.tensor(v, dtype=dtype, device=first.device)
        for v in values
    )


def astype(x: Tensor, dtype: Dtype, /, *, copy: builtins.bool = True, device: Any = None) -> Tensor:
    """`x` with another dtype; itself, with copy=False, where nothing changes."""
    if x.dtype.is_complex and not (dtype.is_complex or dtype == _C.bool):
        raise TypeError(
            f"astype: expected a complex dtype for a complex array, or bool, got {dtype}; see real "
            "and imag"
        )
    return x.to(device=x.device if device is None else device, dtype=dtype, copy=copy)


def can_cast(from_: Union[Dtype, Tensor], to: Dtype, /) -> builtins.bool:
    """Whether promotion leads from one dtype to the other."""
    dtype = from_.dtype if isinstance(from_, Tensor) else from_
    if dtype == _C.uint64 and to in _SIGNED or to == _C.uint64 and dtype in _SIGNED:
        return False  # no dtype holds both
    return _C.promote_types(dtype, to) == to


class finfo_object(NamedTuple):
    """Limits of a floating dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Dtype


class iinfo_object(NamedTuple):
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: Dtype


def finfo(type: Union[Dtype, Tensor], /) -> finfo_object:
    """Limits of a floating dtype, or of the parts of a complex one."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    v = _finfo(dtype)
    return finfo_object(v.bits, v.eps, v.max, v.min, v.smallest_normal, dtype.to_real())


def iinfo(type: Union[Dtype, Tensor], /) -> iinfo_object:
    """Limits of an integer dtype."""
    dtype = type.dtype if isinstance(type, Tensor) else type
    v = _iinfo(dtype)
    return iinfo_object(v.bits, v.max, v.min, dtype)
