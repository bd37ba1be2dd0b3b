"""Calls a function of numbers for all numbers at once.

    evaluate(lambda b, h, q, kv: q >= kv, places(2, 4, 128, 128))

The function speaks of one place; its arguments stand for all places. Elementwise operators on them,
and looking them up in tensors, work for all places in one step. A function that does something else
is called for each place instead: the result is the same, later.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, List, Sequence, Tuple

from treadle import _C
from treadle._functions.variadic import broadcast_shapes

Tensor = _C.Tensor


class _NotInOneStep(Exception):
    """The function does something that is not known to be the same for all places at once."""


# Python's operators are elementwise, but for the product of matrices.
_SIGNS = "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()
_OF_PYTHON = {f"__{side}{sign}__" for side in ("", "r") for sign in _SIGNS} | {
    f"__{sign}__" for sign in "lt le gt ge eq ne neg pos invert abs".split()
}
# Methods that change the dtype of each element, or nothing.
_CONVERSIONS = set("to type bool int long float double half bfloat16 clone contiguous".split())
_known: Dict[str, bool] = {}


def _is_elementwise(name: str) -> bool:
    if name not in _known:
        entries = _C._library_overloads(f"aten::{name}")
        _known[name] = (
            name in _OF_PYTHON
            or name in _CONVERSIONS
            or any(_C._describe_operator(entry)["kind"] == "pointwise" for entry in entries)
        )
    return _known[name]


class _Lanes(Tensor):
    """A number at every place: to the function it has no dimensions, in memory those of the
    places."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, named = getattr(func, "__name__", ""), kwargs or {}
        if name == "__getitem__":
            return _look_up(args[0], args[1])
        if name == "__get__":
            return _property(func.__self__.__name__, args[0])
        if not _is_elementwise(name):
            raise _NotInOneStep(name)
        result = func(*map(_values, args), **{key: _values(value) for key, value in named.items()})
        if not isinstance(result, Tensor):
            raise _NotInOneStep(name)
        return result.as_subclass(_Lanes)

    def __bool__(self) -> bool:
        raise _NotInOneStep("a condition of Python")

    def __index__(self) -> int:
        raise _NotInOneStep("an index of Python")

    def __int__(self) -> int:
        raise _NotInOneStep("an int of Python")

    def __float__(self) -> float:
        raise _NotInOneStep("a float of Python")


def _values(value: Any) -> Any:
    """The values at all places; tensors that are the same at all must be numbers to combine."""
    if isinstance(value, _Lanes):
        return value.as_subclass(Tensor)
    if isinstance(value, Tensor) and value.dim() > 0 or isinstance(value, (list, tuple, _Rows)):
        raise _NotInOneStep("a tensor with dimensions")
    return value


def _property(name: str, lanes: "_Lanes") -> Any:
    values = lanes.as_subclass(Tensor)
    if name in ("dtype", "device", "is_cuda"):
        return getattr(values, name)
    if name == "shape":
        return _C.Size(())
    raise _NotInOneStep(name)


class _Rows:
    """A tensor some of whose first dimensions have been looked up."""

    def __init__(self, table: Tensor, indices: Tuple[Any, ...]) -> None:
        self._table, self._indices = table, indices

    def __getitem__(self, index: Any) -> Any:
        return _look_up(self._table, (*self._indices, *_as_tuple(index)))

    def __getattr__(self, name: str) -> Any:
        raise _NotInOneStep(name)


def _as_tuple(index: Any) -> Tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _look_up(table: Any, index: Any) -> Any:
    indices = _as_tuple(index)
    if isinstance(table, _Lanes) or not isinstance(table, Tensor):
        raise _NotInOneStep("an index into a number")
    for place, one in enumerate(indices):
        number = isinstance(one, int) and not isinstance(one, bool)
        if isinstance(one, _Lanes):
            values = one.as_subclass(Tensor)
            number = not values.dtype.is_floating_point and values.dtype != _C.bool
        if not number or place >= table.dim():
            raise _NotInOneStep("an index that is not a number")
    if len(indices) < table.dim():
        return _Rows(table, indices)
    return table[tuple(map(_values, indices))].as_subclass(_Lanes)


def places(*sizes: int, device: Any = None) -> List[Tensor]:
    """The numbers of all places along each dimension, in a form that broadcasts."""
    return [
        _C.arange(size, device=device).reshape([size if i == dim else 1 for i in range(len(sizes))])
        for dim, size in enumerate(sizes)
    ]


def evaluate(function: Callable[..., Any], arguments: Sequence[Tensor]) -> Tensor:
    """function(*numbers) for the numbers at each place of the arguments, which broadcast."""
    shape = broadcast_shapes(*(a.shape for a in arguments))
    try:
        result = function(*(a.as_subclass(_Lanes) for a in arguments))
    except _NotInOneStep:
        return _one_by_one(function, arguments, shape)
    if isinstance(result, _Lanes):
        return result.as_subclass(Tensor).expand(shape)
    if isinstance(result, (bool, int, float)) or isinstance(result, Tensor) and result.dim() == 0:
        return _C.as_tensor(result, device=arguments[0].device).expand(shape)
    return _one_by_one(function, arguments, shape)


def _one_by_one(
    function: Callable[..., Any], arguments: Sequence[Tensor], shape: Sequence[int]
) -> Tensor:
    whole = [a.expand(shape) for a in arguments]
    device = arguments[0].device
    results = [
        _C.as_tensor(function(*(a[place] for a in whole)), device=device)
        for place in itertools.product(*map(range, shape))
    ]
    if not results:
        return _C.empty(tuple(shape), device=device)
    return _C.stack(results).reshape(tuple(shape))
