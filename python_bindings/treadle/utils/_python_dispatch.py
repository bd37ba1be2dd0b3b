"""Classes that wrap tensors, and modes over operators, as PyTorch keeps them.

A class of tensors that holds others says so by `__tensor_flatten__` and `__tensor_unflatten__`;
is_traceable_wrapper_subclass() asks for them. Modes over operators are not built: what they would
see can be recorded by treadle.profiler, and calls of functions by overrides.TorchFunctionMode.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NoReturn, Optional, Sequence, Tuple

import treadle
from treadle import _names


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class of tensors says how its tensors are taken apart and put together."""
    return (
        isinstance(t, type)
        and issubclass(t, treadle.Tensor)
        and t is not treadle.Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether an object is a tensor of such a class."""
    return is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(
    t: Any,
    callback: Callable[[str, treadle.Tensor], treadle.Tensor],
    outer_size: Optional[Any] = None,
    outer_stride: Optional[Any] = None,
) -> Any:
    """A tensor of such a class with callback(name, tensor) in place of each tensor it holds."""
    names, context = t.__tensor_flatten__()
    made = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(made, context, size, stride)


class TorchDispatchMode:
    """A block in which __torch_dispatch__ of this object would be given every operator that runs.
    The class can be derived from; entering the block is NotImplementedError."""

    supports_higher_order_operators = False

    def __init__(self, _dispatch_key: Any = None) -> None:
        self._dispatch_key = _dispatch_key

    def __torch_dispatch__(
        self, func: Callable, types: Sequence[type], args: Tuple = (), kwargs: Optional[Dict] = None
    ) -> Any:
        """Take over an operator; to be defined."""
        raise NotImplementedError(
            f"{type(self).__name__}: expected __torch_dispatch__ to be defined"
        )

    def __enter__(self) -> NoReturn:
        raise NotImplementedError(
            f"{type(self).__name__}: expected no mode over operators, which is not built; "
            "overrides.TorchFunctionMode is given the calls of functions"
        )

    def __exit__(self, *exc: Any) -> None:
        pass

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode belongs to the library itself."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(
        self, func: Callable, types: Sequence[type], args: Tuple = (), kwargs: Optional[Dict] = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> None:
    """The innermost open mode: there is none."""


def _get_current_dispatch_mode_stack() -> List[TorchDispatchMode]:
    """The open modes: there are none."""
    return []


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode over operators is open: none can be."""
    return False


def any_torch_dispatch_mode_on_stack(*, include_infra_modes: bool = True) -> bool:
    """Whether a mode over operators is open: none can be."""
    return False


__getattr__ = _names.attributes_of(__name__)

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "any_torch_dispatch_mode_on_stack",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "transform_subclass",
]
