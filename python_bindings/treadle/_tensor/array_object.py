"""The parts of the Python array API standard that PyTorch's tensor does not have.

    xp = x.__array_namespace__()       # the module treadle.array_api
    y = x.to_device("cpu")

`x.size` is the one attribute on which the two disagree: here it is PyTorch's method, `x.numel()`
counts the elements.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Optional

from treadle import _C
from treadle._C import Tensor

# Everything that is called the same in these meets the version before it, but for lists that
# became tuples in 2025.12.
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def _array_namespace(self: Tensor, /, *, api_version: Optional[str] = None) -> ModuleType:
    """The module whose functions are the standard's."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"__array_namespace__: expected api_version in {VERSIONS}, got {api_version!r}"
        )
    return importlib.import_module("treadle.array_api")


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """This tensor on another device; itself where it is there already."""
    if stream is not None:
        raise ValueError(f"to_device: expected stream = None, got stream = {stream!r}")
    return self.to(device=device)


def _complex(self: Tensor) -> complex:
    """The value of a tensor of one element."""
    return complex(self.item())


def _imatmul(self: Tensor, other: Tensor) -> Tensor:
    """self @= other, where the product has the shape of self."""
    product = self @ other
    if product.shape != self.shape:
        raise ValueError(
            f"__imatmul__: expected a product of shape {tuple(self.shape)}, "
            f"got {tuple(product.shape)}"
        )
    return self.copy_(product)


# By the name of NumPy's function, which a Python operator calls with an array on one side and a
# tensor on the other: the tensor's own method where the array is the right, or the left side.
_METHODS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "true_divide": ("__truediv__", "__rtruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"),
    "power": ("__pow__", "__rpow__"),
    "matmul": ("__matmul__", "__rmatmul__"),
    "bitwise_and": ("__and__", "__rand__"),
    "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"),
    "left_shift": ("__lshift__", "__rlshift__"),
    "right_shift": ("__rshift__", "__rrshift__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
}


def _array_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Called by NumPy for a function of elements with a tensor among its arguments.

    `array + tensor` is the tensor's sum, gradients included; `array += tensor` writes to the array;
    any other function computes on the tensor's memory, and gives a tensor.
    """
    out = kwargs.get("out", ())
    if any(isinstance(o, Tensor) for o in out):
        return NotImplemented
    own = _METHODS.get(ufunc.__name__) if method == "__call__" and not kwargs else None
    if own is not None and len(inputs) == 2:
        left, right = inputs
        if isinstance(left, Tensor):
            return getattr(left, own[0])(right)
        return getattr(right, own[1])(left)
    result = getattr(ufunc, method)(
        *(t.numpy() if isinstance(t, Tensor) else t for t in inputs), **kwargs
    )
    if out:
        return result
    if isinstance(result, tuple):
        return tuple(_from_array(r) for r in result)
    return _from_array(result)


def _from_array(value: Any) -> Any:
    """A result of NumPy as a tensor, where there is a dtype for it."""
    if getattr(value, "dtype", None) is None or value.dtype.kind not in "biufc":
        return value
    return _C.as_tensor(value)


def _array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """Called by NumPy with its result, where it was called with a tensor."""
    return _from_array(array)


def install() -> None:
    """Gives Tensor these methods."""
    Tensor.__array_namespace__ = _array_namespace  # type: ignore[assignment]
    Tensor.to_device = _to_device
    Tensor.__complex__ = _complex
    Tensor.__imatmul__ = _imatmul  # type: ignore[assignment]
    Tensor.__array_ufunc__ = _array_ufunc
    Tensor.__array_wrap__ = _array_wrap


install()
