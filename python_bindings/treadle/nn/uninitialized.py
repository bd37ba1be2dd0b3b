"""Parameters and buffers whose shape is not known yet, for lazy layers.

weight = UninitializedParameter()
weight.materialize((4, 3))      # now a Parameter
"""

from __future__ import annotations

from typing import Any, Sequence

import treadle
from treadle import Tensor

from .parameter import Buffer, Parameter


class UninitializedTensorMixin:
    """A tensor without a shape: it can be moved, converted and materialized, and nothing else."""

    _becomes: type = Tensor

    def materialize(self, shape: Sequence[int], device: Any = None, dtype: Any = None) -> None:
        """Give it memory of this shape; it becomes an ordinary parameter or buffer."""
        old = self.data
        self.data = treadle.empty(
            tuple(shape),
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

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter whose shape is not known yet."""

    _becomes = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> "UninitializedParameter":
        data = treadle.empty((0,), device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict) -> "UninitializedParameter":
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: int) -> tuple:
        return type(self), (self.requires_grad, self.data.device, self.data.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A Buffer whose shape is not known yet."""

    _becomes = Buffer

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> "UninitializedBuffer":
        data = treadle.empty((0,), device=device, dtype=dtype)
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


def is_lazy(param: Any) -> bool:
    """Whether it is a parameter or buffer without a shape."""
    return isinstance(param, UninitializedTensorMixin)
