"""Parameter: a tensor that a Module counts among its parameters, and Buffer, one that it counts as
state.

    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = nn.Parameter(treadle.ones(3))   # found by .parameters()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional

from treadle import _C, _names
from treadle._C import Tensor


class _ParameterMeta(type):
    """A tensor of a class of its own can be a parameter or buffer too, and stay of that class."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        mark = "_is_param" if cls is Parameter else "_is_buffer" if cls is Buffer else ""
        return bool(mark) and isinstance(instance, Tensor) and getattr(instance, mark, False)


def _is_plain(kind: Any) -> bool:
    """Whether tensors of the class do what others do."""
    if kind is Tensor:
        return True
    return (
        kind.__torch_function__ is _C._disabled_torch_function_impl
        and kind.__torch_dispatch__ is _C._disabled_torch_dispatch_impl
    )


def _kept(cls: type, data: Tensor) -> Any:
    """The tensor without history, of its class."""
    kept = data.detach()
    if type(kept) is not type(data):
        raise RuntimeError(
            f"{cls.__name__}: expected detach() of a {type(data).__name__} to return one, got "
            f"{type(kept).__name__}"
        )
    return kept


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor to be trained: a leaf that requires grad unless told otherwise.

    A tensor of a subclass with a __torch_function__ or __torch_dispatch__ stays of its class, and
    is marked as parameter.
    """

    __torch_function__ = _C._disabled_torch_function_impl  # type: ignore[assignment]

    def __new__(cls, data: Optional[Tensor] = None, requires_grad: bool = True) -> "Parameter":
        if data is None:
            data = _C.empty((0,))
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: expected data to be a Tensor, got {type(data).__name__}")
        if _is_plain(type(data)):
            return Tensor._make_subclass(cls, data.detach(), requires_grad)
        kept = _kept(cls, data).requires_grad_(requires_grad)
        kept._is_param = True
        return kept

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is left to do: __new__ made the tensor."""

    def __repr__(self) -> str:
        from treadle._tensor_str import tensor_repr

        return "Parameter containing:\n" + tensor_repr(self)


class Buffer(Tensor, metaclass=_ParameterMeta):
    """A tensor that a Module keeps as state when it is assigned to an attribute, without training
    it. One of a subclass with a __torch_dispatch__ stays of its class, and is marked as buffer."""

    __torch_function__ = _C._disabled_torch_function_impl  # type: ignore[assignment]
    persistent: bool

    def __new__(cls, data: Optional[Tensor] = None, *, persistent: bool = True) -> "Buffer":
        if data is None:
            data = _C.empty((0,))
        if not isinstance(data, Tensor):
            raise TypeError(f"Buffer: expected data to be a Tensor, got {type(data).__name__}")
        if type(data).__torch_dispatch__ is _C._disabled_torch_dispatch_impl:
            buffer = Tensor._make_subclass(cls, data.detach(), data.requires_grad)
        else:
            buffer = _kept(cls, data).requires_grad_(data.requires_grad)
            buffer._is_buffer = True
        buffer.persistent = persistent
        return buffer

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is left to do: __new__ made the tensor."""


_UNINITIALIZED = (
    "UninitializedBuffer UninitializedParameter UninitializedTensorMixin is_lazy".split()
)


def __getattr__(name: str) -> Any:
    if name not in _UNINITIALIZED:
        raise _names.missing(__name__, name)
    from treadle.nn import uninitialized

    return getattr(uninitialized, name)
