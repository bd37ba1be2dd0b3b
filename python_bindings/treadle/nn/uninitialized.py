"""Parameters and buffers whose shape is not known yet, for lazy layers.

Example:

    weight = UninitializedParameter()
    weight.materialize((4, 3))      # now a Parameter
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence, Union

from treadle import _C
from treadle._C import Tensor

from .parameter import Buffer, Parameter

# Methods that ask nothing of a shape; attributes are read and written by the first three.
_WITHOUT_SHAPE = frozenset(
    ("__get__", "__set__", "__delete__", "copy_", "cpu", "cuda", "detach", "get_device", "size")
    + ("is_complex", "is_floating_point", "requires_grad_", "to", "type", "register_hook")
    + ("bfloat16", "bool", "char", "double", "float", "half", "int", "long", "short")
)


class UninitializedTensorMixin:
    """A tensor without a shape: it can be moved, converted and materialized, and nothing else."""

    _becomes: type = Tensor
    if TYPE_CHECKING:  # what a tensor has
        data: Any

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name not in _WITHOUT_SHAPE:
            raise ValueError(
                f"{name}: expected tensors that have a shape, got an uninitialized parameter or "
                "buffer; a call of its module, or materialize(), gives it one"
            )
        with _C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    def materialize(
        self, shape: Union[int, Sequence[int]], device: Any = None, dtype: Any = None
    ) -> None:
        """Give it memory of this shape; it becomes an ordinary parameter or buffer."""
        old = self.data
        self.data = _C.empty(
            (shape,) if isinstance(shape, int) else tuple(shape),
            device=old.device if device is None else device,
            dtype=old.dtype if dtype is None else dtype,
        )
        self.__class__ = self._becomes

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually "
            "happens in `load_state_dict` when trying to load an uninitialized parameter into an "
            "initialized one. Call `forward` to initialize the parameters before accessing their "
            "attributes."
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "share_memory_: expected a parameter or buffer that has a shape, got an uninitialized "
            "one; a call of its module, or materialize(), gives it one"
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A Parameter whose shape is not known yet."""

    _becomes = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> "UninitializedParameter":
        data = _C.empty((0,), device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict) -> "UninitializedParameter":
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: int) -> tuple:
        return type(self), (self.requires_grad, self.data.device, self.data.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):  # type: ignore[misc]
    """A Buffer whose shape is not known yet."""

    _becomes = Buffer

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> "UninitializedBuffer":
        data = _C.empty((0,), device=device, dtype=dtype)
        buffer = Tensor._make_subclass(cls, data, requires_grad)
        buffer.persistent = persistent
        return buffer

    def __deepcopy__(self, memo: dict) -> "UninitializedBuffer":
        if id(self) not in memo:
            memo[id(self)] = type(self)(
                self.requires_grad, self.data.device, self.data.dtype, self.persistent
            )
        return memo[id(self)]

    def __reduce_ex__(self, protocol: int) -> tuple:
        arguments = (self.requires_grad, self.data.device, self.data.dtype, self.persistent)
        return type(self), arguments


def is_lazy(value: Any) -> bool:
    """Whether a parameter or buffer waits for its shape."""
    return isinstance(value, UninitializedTensorMixin)
