"""The arrays that the standard's functions make: tensors whose operators are the standard's, too.

    x, wide = xp.ones(2), xp.asarray(1.0, dtype=xp.float64)
    (x + wide).dtype                       # float64; of two tensors it is float32

An Array is a Tensor, and takes the place of one everywhere. The operators of a Tensor let a 0-dim
operand take part by its kind only, and floor_divide rounds at infinities, as PyTorch has it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable

from treadle._C import Tensor
from treadle.array_api import _pointwise, _products

_NUMBERS = (Tensor, int, float, complex)
_ARITHMETIC = {
    "add": _pointwise.add,
    "sub": _pointwise.subtract,
    "mul": _pointwise.multiply,
    "truediv": _pointwise.divide,
    "floordiv": _pointwise.floor_divide,
    "mod": _pointwise.remainder,
    "pow": _pointwise.pow,
    "and": _pointwise.bitwise_and,
    "or": _pointwise.bitwise_or,
    "xor": _pointwise.bitwise_xor,
    "lshift": _pointwise.bitwise_left_shift,
    "rshift": _pointwise.bitwise_right_shift,
    "matmul": _products.matmul,
}
_COMPARISONS = {
    "eq": _pointwise.equal,
    "ne": _pointwise.not_equal,
    "lt": _pointwise.less,
    "le": _pointwise.less_equal,
    "gt": _pointwise.greater,
    "ge": _pointwise.greater_equal,
}


class Array(Tensor):
    """A tensor whose operators promote, and treat special values, as the standard says."""

    __hash__ = Tensor.__hash__


def _named(name: str, method: Callable[..., Any]) -> None:
    method.__name__, method.__qualname__ = name, f"Array.{name}"
    setattr(Array, name, method)


def _forward(function: Callable[..., Tensor]) -> Callable[..., Any]:
    return lambda x, y, /: function(x, y) if isinstance(y, _NUMBERS) else NotImplemented


def _reflected(function: Callable[..., Tensor]) -> Callable[..., Any]:
    return lambda x, y, /: function(y, x) if isinstance(y, _NUMBERS) else NotImplemented


def _in_place(name: str, function: Callable[..., Tensor]) -> Callable[..., Any]:
    def method(x: Tensor, y: Any, /) -> Any:
        if not isinstance(y, _NUMBERS):
            return NotImplemented
        result = function(x, y)
        if result.dtype != x.dtype:
            raise TypeError(
                f"{name}: expected a result of dtype {x.dtype}, got one of {result.dtype}"
            )
        if result.shape != x.shape:
            kind = "product" if function is _products.matmul else "result"
            raise ValueError(
                f"{name}: expected a {kind} of shape {tuple(x.shape)}, got {tuple(result.shape)}"
            )
        return x.copy_(result)

    return method


for _name, _function in _ARITHMETIC.items():
    _named(f"__{_name}__", _forward(_function))
    _named(f"__r{_name}__", _reflected(_function))
    _named(f"__i{_name}__", _in_place(f"__i{_name}__", _function))
for _name, _function in _COMPARISONS.items():
    _named(f"__{_name}__", _forward(_function))


def as_array(t: Tensor) -> Array:
    """The elements of `t` as an Array; `t` itself where it is one."""
    return t if isinstance(t, Array) else t.as_subclass(Array)
