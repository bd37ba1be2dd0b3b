"""Modes over operators, and classes of tensors that stand for others.

    class Counter(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.calls = collections.Counter()

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.calls[func] += 1
            return func(*args, **(kwargs or {}))

    with Counter() as counter:
        model(x).sum().backward()

A mode is given every operator that runs on its thread, below autograd: the calls of a backward as
well, and none of those that the handler itself makes. A class of tensors has the same function as
a class method, and is given the operators that one of its tensors takes part in.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import threading
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from treadle import _C, _names
from treadle._C import Tensor

_push_on_torch_dispatch_stack = _C._push_on_torch_dispatch_stack
_pop_torch_dispatch_stack = _C._pop_torch_dispatch_stack
_len_torch_dispatch_stack = _C._len_torch_dispatch_stack
_get_dispatch_stack_at = _C._get_dispatch_stack_at


class _Entered(threading.local):
    """How many blocks of modes this thread is in, whether their handlers run or not."""

    count = 0


_entered = _Entered()


class TorchDispatchMode:
    """A block in which __torch_dispatch__(func, types, args, kwargs) of this object is given every
    operator that this thread runs, in place of its kernel; what it returns is the result.

    `func` is a member of treadle.ops, `types` holds the classes among the arguments that take over
    operators themselves, and func(*args, **kwargs) calls the operator as if this block had ended.
    The innermost of several blocks is asked first. A result that the operator's schema does not
    have is RuntimeError; NotImplemented leaves the call to the classes of the arguments, and is
    TypeError where these leave it as well.
    """

    supports_higher_order_operators = False

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError(
                f"{type(self).__name__}: expected _dispatch_key = None, as all modes have one "
                f"place, below autograd, got {_dispatch_key}"
            )

    def __torch_dispatch__(
        self, func: Callable, types: Sequence[type], args: Tuple = (), kwargs: Optional[Dict] = None
    ) -> Any:
        """Take over an operator; to be defined."""
        raise NotImplementedError(
            f"{type(self).__name__}: expected __torch_dispatch__ to be defined"
        )

    def __enter__(self) -> "TorchDispatchMode":
        _push_mode(self)
        _entered.count += 1
        return self

    def __exit__(self, *exc: Any) -> None:
        _entered.count -= 1
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> "TorchDispatchMode":
        """A mode made with the arguments, as older programs open one: with Mode.push(): ..."""
        warnings.warn(
            f"{cls.__name__}.push() is no longer needed; write with {cls.__name__}(): ...",
            stacklevel=2,
        )
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether the mode belongs to the library itself."""
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Whether a compiler may leave the mode out of what it does for itself."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(
        self, func: Callable, types: Sequence[type], args: Tuple = (), kwargs: Optional[Dict] = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


# ---- the open modes ----


def _push_mode(mode: TorchDispatchMode) -> None:
    """Open a mode."""
    _push_on_torch_dispatch_stack(mode)


def _pop_mode(k: Any = None) -> TorchDispatchMode:
    """Close the innermost mode, and return it. RuntimeError where none is open."""
    return _pop_torch_dispatch_stack(k)


def _get_current_dispatch_mode() -> Optional[TorchDispatchMode]:
    """The innermost open mode, or None."""
    count = _len_torch_dispatch_stack()
    return _get_dispatch_stack_at(count - 1) if count else None


def _get_current_dispatch_mode_stack() -> List[TorchDispatchMode]:
    """The open modes, innermost last."""
    return [_get_dispatch_stack_at(i) for i in range(_len_torch_dispatch_stack())]


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether this thread is in the block of a mode, also while the mode handles a call."""
    return _entered.count > 0


def any_torch_dispatch_mode_on_stack() -> bool:
    """Whether a mode would be given the next operator."""
    return _len_torch_dispatch_stack() > 0


@contextlib.contextmanager
def _pop_mode_temporarily(k: Any = None) -> Iterator[TorchDispatchMode]:
    """A block in which the innermost mode, which it gives, is closed."""
    mode = _pop_mode(k)
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[List[TorchDispatchMode]]:
    """A block in which no mode is open; it gives those that were, innermost last."""
    modes = _get_current_dispatch_mode_stack()
    for _ in modes:
        _pop_mode()
    try:
        yield modes
    finally:
        for mode in modes:
            _push_mode(mode)


def _detect_infra_mode(key: Any) -> None:
    """The mode of the library's own with a place of its own: there are none."""


# ---- classes of tensors ----


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class of tensors says how its tensors are taken apart and put together."""
    return (
        isinstance(t, type)
        and issubclass(t, Tensor)
        and t is not Tensor
        and hasattr(t, "__tensor_flatten__")
        and hasattr(t, "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether an object is a tensor of such a class."""
    return is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(
    t: Any,
    callback: Callable[[str, Tensor], Tensor],
    outer_size: Optional[Any] = None,
    outer_stride: Optional[Any] = None,
) -> Any:
    """A tensor of such a class with callback(name, tensor) in place of each tensor it holds."""
    names, context = t.__tensor_flatten__()
    made = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(made, context, size, stride)


# ---- what a handler returns ----


def _aliases(info: Any) -> frozenset:
    """The sets of memory that an argument or result of a schema says it is of."""
    return frozenset(info.alias_info.before_set) if info.alias_info is not None else frozenset()


def _arguments(func: Any, args: Tuple, kwargs: Optional[Dict]) -> List[Tuple[Any, Any]]:
    """The arguments that were given, each with what the schema says of it."""
    named = kwargs or {}
    given = []
    for i, info in enumerate(func._schema.arguments):
        if i < len(args):
            given.append((info, args[i]))
        elif info.name in named:
            given.append((info, named[info.name]))
    return given


def _one_of_set(arguments: List[Tuple[Any, Any]], result: Any, is_write: bool) -> Any:
    """The argument that shares its memory with the result, by the schema; None without one."""
    sets = _aliases(result)
    for info, value in arguments:
        if sets & _aliases(info) and info.is_write == is_write:
            return value
    return None


def _share(func: Any, argument: Any, results: Any) -> None:
    """The storage of a tensor for views of it that stand for others, as it does."""
    for result in results if isinstance(results, (list, tuple)) else (results,):
        if not isinstance(result, Tensor) or not isinstance(argument, Tensor):
            continue
        if type(result) is not type(argument):
            raise RuntimeError(
                f"return_and_correct_aliasing: expected {func} of a {type(argument).__name__} to "
                f"return a view of the same class, got {type(result).__name__}"
            )
        if _C._is_wrapper(result) and _C._is_wrapper(argument):
            _C._share_storage(result, argument)


def return_and_correct_aliasing(func: Any, args: Tuple, kwargs: Optional[Dict], out: Any) -> Any:
    """The result that __torch_dispatch__ of a class that stands for other tensors is to return for
    `out`, which it has made: the arguments themselves where the operator writes them, and views
    over the storage of the tensor that they are views of. An operator that changes the geometry of
    its argument, such as t_, changes that of the class's tensor as well.

    RuntimeError for a view of another class than the tensor's.
    """
    from treadle._introspection.tags import Tag

    returns = func._schema.returns
    given = _arguments(func, args, kwargs)
    if len(returns) == 1 and not returns[0].is_write and _aliases(returns[0]):
        _share(func, _one_of_set(given, returns[0], False), out)
    if Tag.inplace_view in func.tags:
        with _C._DisableTorchDispatch():
            func(*args, **(kwargs or {}))
    if not any(r.is_write for r in returns):
        return out
    results = list(out) if len(returns) > 1 else [out]
    for i, result in enumerate(returns):
        if result.is_write:
            results[i] = _one_of_set(given, result, True)
    return type(out)(results) if len(returns) > 1 else results[0]


__getattr__ = _names.attributes_of(__name__)

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "any_torch_dispatch_mode_on_stack",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
    "transform_subclass",
]
