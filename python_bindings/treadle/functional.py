"""Functions that are more than one operator, or choose between several by an argument."""

from __future__ import annotations

from typing import Any, Optional, Tuple, Union

from treadle import _C
from treadle._C import Tensor


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Whether `obj` is the memory under a tensor."""
    return isinstance(obj, _C.UntypedStorage)


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating one."""
    return input.dtype.is_floating_point


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    return input.dtype.is_complex


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def typename(obj: Any) -> str:
    """The name of an object's type, as messages show it."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = type(obj)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def nonzero(
    input: Tensor, *, out: Optional[Tensor] = None, as_tuple: bool = False
) -> Union[Tensor, Tuple[Tensor, ...]]:
    """Positions of the elements that are not zero: one row each; `as_tuple`: a tensor per dimension."""
    if as_tuple:
        return _C.nonzero_numpy(input)
    return _C.nonzero(input) if out is None else _C.nonzero(input, out=out)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: Optional[int] = None,
) -> Union[Tensor, Tuple[Tensor, ...]]:
    """The different values; if asked for, where each element went and how often each value occurs."""
    if dim is not None:
        raise NotImplementedError(f"unique: expected dim = None, got dim = {dim}")
    values, inverse, counts = _C._unique2(input, sorted, return_inverse, return_counts)
    results = [values] + [inverse] * return_inverse + [counts] * return_counts
    return values if len(results) == 1 else tuple(results)


def _install_methods() -> None:
    """The same functions as methods of Tensor."""
    Tensor.nonzero = nonzero
    Tensor.unique = unique


_install_methods()
