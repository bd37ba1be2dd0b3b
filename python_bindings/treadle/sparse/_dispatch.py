"""The library's functions and operators on sparse tensors: those named here, the methods
that sparse tensors have, and for all others an error.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

from treadle.sparse import _math
from treadle.sparse._tensor import SparseTensor, _dense_only, empty


def _zeros_like(input: Any, *, dtype: Any = None, device: Any = None, **_: Any) -> SparseTensor:
    return empty(input.shape, dtype or input.dtype, device or input.device)


def _swapped(function: Callable) -> Callable:
    return lambda self, other: function(other, self)


# Functions whose sparse operand may be any of theirs.
_FUNCTIONS: Dict[str, Callable] = {
    **{f.__name__: f for f in (_math.mm, _math.mv, _math.bmm, _math.matmul, _math.addmm)},
    **{f.__name__: f for f in (_math.linear, _math.cat, _math.stack, _math.add_, _math.sub_)},
    "add": _math.add,
    "sub": _math.sub,
    "subtract": _math.sub,
    "mul": _math.mul,
    "multiply": _math.mul,
    "div": _math.div,
    "divide": _math.div,
    "true_divide": _math.div,
    "spmm": _math.mm,
    "concat": _math.cat,
    "concatenate": _math.cat,
    "linalg_vector_norm": _math.norm,
    "dropout": _math.dropout,
    "zeros_like": _zeros_like,
    "empty_like": _zeros_like,
}

_METHODS: Dict[str, Callable] = {
    **{name: _FUNCTIONS[name] for name in "mm mv bmm matmul add sub mul div".split()},
    **{name: _FUNCTIONS[name] for name in "multiply divide true_divide subtract".split()},
    **{name: _math.elementwise(name) for name in _math.ELEMENTWISE},
    "add_": _math.add_,
    "sub_": _math.sub_,
    "smm": _math.mm,
    "neg": _math.neg,
    "negative": _math.neg,
    "pow": _math.pow,
    "sum": _math.sum,
    "norm": _math.norm,
    "any": lambda self: self.coalesce()._v.any(),
    "__add__": _math.add,
    "__sub__": _math.sub,
    "__mul__": _math.mul,
    "__truediv__": _math.div,
    "__floordiv__": lambda self, other: _math.div(self, other, rounding_mode="floor"),
    "__matmul__": _math.matmul,
    "__radd__": _swapped(_math.add),
    "__rsub__": _swapped(_math.sub),
    "__rmul__": _swapped(_math.mul),
    "__rtruediv__": _swapped(_math.div),
    "__rmatmul__": _swapped(_math.matmul),
    "__neg__": _math.neg,
    "__abs__": _math.elementwise("abs"),
    "__pow__": _math.pow,
}


def _in_place(name: str) -> Callable:
    def method(self: SparseTensor, *args: Any, **kwargs: Any) -> SparseTensor:
        return self._write(name, _METHODS[name[:-1]](self, *args, **kwargs))

    method.__name__, method.__doc__ = name, f"As Tensor.{name}()."
    return method


def install() -> None:
    """Gives sparse tensors their arithmetic."""
    for name, function in _METHODS.items():
        setattr(SparseTensor, name, function)
    for name in "mul_ div_ neg_ pow_ abs_ sqrt_ relu_".split():
        setattr(SparseTensor, name, _in_place(name))


def call(func: Callable, args: Tuple, kwargs: Dict[str, Any]) -> Any:
    """func(*args, **kwargs), where some argument is a sparse tensor."""
    name = getattr(func, "__name__", str(func))
    out = kwargs.get("out")
    if out is not None:
        raise NotImplementedError(f"{name}: expected no out= for sparse tensors, got one")
    if name in _FUNCTIONS:
        return _FUNCTIONS[name](*args, **kwargs)
    if not args and "input" in kwargs:
        kwargs = dict(kwargs)
        args = (kwargs.pop("input"),)
    first = args[0] if args else None
    if issubclass(type(first), SparseTensor) and hasattr(SparseTensor, name):
        return getattr(first, name)(*args[1:], **kwargs)
    raise _dense_only(name)
