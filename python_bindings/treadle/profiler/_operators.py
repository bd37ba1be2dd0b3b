"""The operators that begin and end a range of a recording, for programs that are made of operators.

Example:

    handle = treadle.ops.profiler._record_function_enter("forward")
    y = x.relu()
    treadle.ops.profiler._record_function_exit(handle)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from treadle import _C
from treadle._C import Tensor
from treadle._ops import OpOverload, OpOverloadPacket
from treadle.overrides import has_torch_function


def _record_function_enter(name: str, args: Optional[str] = None) -> Tensor:
    """Begins a range of the name. The tensor stands for it until _record_function_exit(). args is a
    note that recordings do not keep."""
    return _C.tensor([_C._profiler_begin(name)])


def _record_function_exit(handle: Tensor) -> None:
    """Ends the range. Raises RuntimeError where the tensor does not stand for one."""
    if handle.dtype != _C.int64 or handle.numel() != 1 or int(handle) < 0:
        raise RuntimeError(
            "_record_function_exit: expected what _record_function_enter() returned, got a tensor "
            f"of the shape {tuple(handle.shape)} and {handle.dtype}"
        )
    _C._profiler_end(int(handle))


_FUNCTIONS: Dict[str, Callable[..., Any]] = {
    "_record_function_enter": _record_function_enter,
    "_record_function_exit": _record_function_exit,
}


# A call of an operator is an event, and an event ends what began in it. So these are called without
# one.
class RangeOverload(OpOverload):
    """One of the operators, as an overload."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if has_torch_function((*args, *kwargs.values())):
            return super().__call__(*args, **kwargs)
        return _FUNCTIONS[self._opname](*args, **kwargs)


class RangePacket(OpOverloadPacket):
    """One of the operators, by its name."""

    _overload_class = RangeOverload

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if has_torch_function((*args, *kwargs.values())):
            return super().__call__(*args, **kwargs)
        return _FUNCTIONS[self.__name__](*args, **kwargs)
