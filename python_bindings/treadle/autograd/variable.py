"""Variable: another name for tensors, from the time when the two were different things.

Example:

    isinstance(x, Variable)                   # True for every tensor
    x = Variable(data, requires_grad=True)    # a tensor over the same elements, without history
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Any, Callable

from treadle import _C


class _VariableMeta(type):
    """Every tensor is an instance."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _C.Tensor)


class _Engine:
    """The functions of the engine that programs ask for."""

    @staticmethod
    def queue_callback(function: Callable[[], Any]) -> None:
        """Call `function` after the backward that runs; RuntimeError when none does."""
        _C._queue_callback(function)


class Variable(metaclass=_VariableMeta):
    """Not a class of objects: calling it gives a Tensor."""

    _execution_engine = _Engine()

    def __new__(  # type: ignore[misc]
        cls, data: _C.Tensor, requires_grad: bool = False, volatile: Any = None
    ) -> _C.Tensor:
        """A leaf over the elements of `data`; TypeError when that is no tensor."""
        if not isinstance(data, _C.Tensor):
            raise TypeError(
                f"Variable: expected data to be a Tensor, got {type(data).__name__}; "
                "other values become one by tensor()"
            )
        if volatile is not None:
            warnings.warn("volatile has no effect any more: use no_grad() instead", stacklevel=2)
        return data.detach().requires_grad_(requires_grad)


__all__ = ["Variable"]
