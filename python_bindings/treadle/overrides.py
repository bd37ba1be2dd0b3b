"""The parts of __torch_function__: classes and modes that take over calls of the library.

    class Logged(treadle.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            print(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    class Counting(TorchFunctionMode):
        calls = 0
        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            return func(*args, **(kwargs or {}))

Any class may have a `__torch_function__`; its objects then stand for tensors in calls. Functions of
the user take part through has_torch_function() and handle_torch_function().
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import inspect
import types
import warnings
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from treadle import _C, _names
from treadle._functions.variadic import broadcast_shapes
from treadle.functional import is_storage, is_tensor, typename

Tensor = _C.Tensor

has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """The result of public_api(*args, **kwargs) by the overrides of `relevant_args` and of modes.

    TypeError when each of them returns NotImplemented.
    """
    return _C._call_torch_function(public_api, relevant_args, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable:
    """Decorates a function so that it can be overridden; `dispatcher` takes its arguments and
    returns those that may have overrides."""

    def decorate(func: Callable) -> Callable:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or an object whose class has a `__torch_function__`."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def _get_overloaded_args(relevant_args: Iterable[Any], get_type_fn: Any = None) -> List[Any]:
    """The arguments with overrides in the order in which they are asked, one of each class."""
    return _C._overloaded_args(relevant_args)


# ---- modes ----


class TorchFunctionMode:
    """A block in which __torch_function__ of this object is given every call of the library.

    While it handles one, the mode is off, so that the call itself can be made. Modes nest: the
    innermost is asked first.
    """

    def __torch_function__(
        self, func: Callable, types: Sequence[type], args: Tuple = (), kwargs: Optional[Dict] = None
    ) -> Any:
        """Take over a call; to be defined."""
        raise NotImplementedError(
            f"{type(self).__name__}: expected __torch_function__ to be defined"
        )

    def __enter__(self) -> "TorchFunctionMode":
        _C._push_torch_function_mode(self)
        return self

    def __exit__(self, *exc: Any) -> None:
        _C._pop_torch_function_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> "TorchFunctionMode":
        """The older way to make a mode."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(
        self, func: Callable, types: Sequence[type], args: Tuple = (), kwargs: Optional[Dict] = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Optional[TorchFunctionMode]:
    """The innermost open mode."""
    modes = _C._torch_function_modes()
    return modes[-1] if modes else None


def _get_current_function_mode_stack() -> List[TorchFunctionMode]:
    """The open modes, innermost last."""
    return _C._torch_function_modes()


def _len_torch_function_stack() -> int:
    return len(_C._torch_function_modes())


# ---- what can be overridden ----

_NAMESPACES = ("", "functional", "nn.functional", "linalg", "fft", "special")

# Members of Tensor that belong to the language and not to the library.
_NOT_OVERRIDABLE = frozenset(
    """
    __class__ __delattr__ __delitem__ __dict__ __dir__ __getattribute__ __getstate__ __hash__
    __init__ __init_subclass__ __iter__ __new__ __setattr__ __sizeof__ __str__ __subclasshook__
    __torch_dispatch__ __torch_function__ _make_subclass _make_wrapper_subclass as_subclass
    new_tensor
    """.split()
)


def _is_function(value: Any) -> bool:
    return isinstance(value, (_C._OverridableFunction, types.BuiltinFunctionType))


def _namespace(name: str) -> Any:
    module = _names.package()
    for part in filter(None, name.split(".")):
        module = getattr(module, part)
    return module


@functools.lru_cache(None)
def _overridable() -> Tuple[Dict[Any, List[Callable]], Dict[Callable, str]]:
    """For each namespace its functions, and for each function its name."""
    functions: Dict[Any, List[Callable]] = {}
    names: Dict[Callable, str] = {}

    def add(place: Any, function: Callable, name: str) -> None:
        functions.setdefault(place, []).append(function)
        names.setdefault(function, name)

    ignored = get_ignored_functions()
    for space in _NAMESPACES:
        module = _namespace(space)
        title = ".".join(filter(None, (_names.PACKAGE, space)))
        for name in dir(module):
            value = getattr(module, name)
            if name.startswith("_") or not _is_function(value) or value in ignored:
                continue
            add(module, value, f"{title}.{name}")
    for name in dir(Tensor):
        value = getattr(Tensor, name)
        if name in _NOT_OVERRIDABLE:
            continue
        if isinstance(value, types.GetSetDescriptorType):
            add(value, value.__get__, f"{_names.PACKAGE}.Tensor.{name}.__get__")
        elif callable(value) and getattr(object, name, None) is not value:
            add(Tensor, value, f"{_names.PACKAGE}.Tensor.{name}")
    return functions, names


def get_overridable_functions() -> Dict[Any, List[Callable]]:
    """The functions that can be overridden, by where they are."""
    return _overridable()[0]


@functools.lru_cache(None)
def get_ignored_functions() -> Set[Callable]:
    """Functions of the namespaces that are about other things than tensors, and call no
    overrides."""
    ignored = {is_tensor, is_storage, typename, broadcast_shapes}
    settings = ("set_", "get_", "is_autocast", "autocast_", "is_anomaly", "is_grad", "is_inference")
    package = _names.package()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some names are deprecated
        values = [(name, getattr(package, name)) for name in dir(package)]
    for name, value in values:
        if isinstance(value, types.FunctionType) or name.startswith(settings):
            ignored.add(value)
    return {f for f in ignored if callable(f)}


def get_testing_overrides() -> Dict[Callable, Callable]:
    """For each function that can be overridden one with its parameters that returns -1."""
    functions = (f for group in get_overridable_functions().values() for f in group)
    return {function: _returns_minus_one(function) for function in functions}


def _returns_minus_one(function: Callable) -> Callable:
    def stand_in(*args: Any, **kwargs: Any) -> int:
        return -1

    try:
        stand_in.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        pass  # it has several: any arguments are taken
    return stand_in


def get_default_nowrap_functions() -> Set[Callable]:
    """Functions whose results Tensor.__torch_function__ does not make tensors of the class."""
    cls: Any = Tensor
    return {cls._base.__get__, cls.grad.__get__}


def resolve_name(f: Callable) -> Optional[str]:
    """The name of an overridable function as programs write it; None for another."""
    if isinstance(f, (types.GetSetDescriptorType, str)):
        return str(f)
    name = _overridable()[1].get(f)
    return None if name is None else _names.in_words_of_the_program(name)


def is_tensor_method_or_property(func: Callable) -> bool:
    """Whether a function that an override was given is a method or an attribute of Tensor."""
    return func in _methods() or getattr(func, "__name__", None) in ("__get__", "__set__")


@functools.lru_cache(None)
def _methods() -> Set[Callable]:
    return set(get_overridable_functions()[Tensor])


__all__ = [
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]
