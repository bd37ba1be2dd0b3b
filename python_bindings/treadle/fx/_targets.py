"""How the functions that nodes call are named in text and in code.

A function of the package is named as the program imports it, `torch.relu` or `treadle.relu`, and
that name leads to the function again; another function has the name of its module.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
import operator
import re
import types
import typing
from typing import Any, Callable, Optional

from treadle import _names

_ROOTS = (_names.PACKAGE, "torch")
# Where the functions of the package are public, the most telling place first.
_PLACES = ("functional", "nn.functional", "")


def _place(path: str) -> Any:
    space: Any = _names.package()
    for part in filter(None, path.split(".")):
        space = getattr(space, part, None)
    return space


def is_of_package(obj: Any) -> bool:
    """Whether an object belongs to the package, so that its name leads to it."""
    if isinstance(obj, types.ModuleType):
        return False
    module = getattr(obj, "__module__", None)
    if isinstance(module, str):
        return module.partition(".")[0] in _ROOTS
    name = getattr(obj, "__name__", None)
    return name is not None and any(
        getattr(_place(path), name, None) is obj for path in ("", "nn.functional")
    )


def _leads_to(path: str, obj: Any) -> bool:
    found: Any = _names.package()
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found is obj


def _in_package(obj: Any, module: str, name: str) -> str:
    """The name of an object of the package, from its root on."""
    if module.startswith(tuple(f"{root}._ops" for root in _ROOTS)):
        return f"{_names.PACKAGE}.ops{module.partition('._ops')[2]}.{name}"
    below = module.partition(".")[2]
    if not isinstance(obj, (types.BuiltinFunctionType, type)):
        for path in reversed(_PLACES) if name.startswith("_") else _PLACES:
            if getattr(_place(path), name, None) is obj:
                return ".".join(filter(None, (_names.PACKAGE, path, name)))
    if below == "_C" and getattr(_names.package(), name, None) is obj:
        return f"{_names.PACKAGE}.{name}"
    return ".".join(filter(None, (_names.PACKAGE, below, name)))


def _get_qualified_name(func: Callable[..., Any]) -> str:
    """The name of a function with its module, `torch.relu` or `math.sqrt`; of a function that is
    built into Python its name alone. RuntimeError for a lambda, which has none."""
    name = getattr(func, "__name__", None) or type(func).__name__
    if getattr(builtins, name, None) is func:
        return name
    owner = getattr(func, "__objclass__", None)
    if owner is not None and isinstance(
        func, (types.MethodDescriptorType, types.WrapperDescriptorType)
    ):
        place = owner.__module__
        if place.partition(".")[0] in _ROOTS:
            place = _names.in_words_of_the_program(
                ".".join([_names.PACKAGE, *place.split(".")[1:]])
            )
        return f"{place}.{owner.__name__}.{name}"
    if name == "<lambda>":
        raise RuntimeError("fx: expected a function with a name as target of a node, got a lambda")
    module = _find_module_of_method(func)
    if module.partition(".")[0] in _ROOTS:
        return _names.in_words_of_the_program(_in_package(func, module, name))
    return (
        f"{module}.{name}".replace("_operator.", "operator.")
        if module == "_operator"
        else (f"{module}.{name}")
    )


def _find_module_of_method(orig_method: Callable[..., Any]) -> str:
    """The module of a function. RuntimeError for one that no module owns."""
    module = getattr(orig_method, "__module__", None)
    if module is not None:
        return module
    for path in ("", "nn.functional"):
        place = _place(path)
        if getattr(place, getattr(orig_method, "__name__", ""), None) is orig_method:
            return place.__name__
    raise RuntimeError(f"fx: expected a function of a module, got {orig_method}")


def _type_repr(obj: Any) -> str:
    """A type as text: `int`, `torch.Tensor`, `typing.List[int]`."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return f"{_names.in_words_of_the_program(obj.__module__)}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj)


def _snake_case(text: str) -> str:
    """`AvgPool2d` as `avg_pool2d`."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", text).lower()


def name_of_target(target: Any) -> str:
    """The name of a node that calls a target, before it is made unique."""
    if callable(target) and not isinstance(target, str):
        name = getattr(target, "__name__", type(target).__name__)
    else:
        name = target
    if len(name) > 4 and name[:2] == "__" == name[-2:]:
        name = name[2:-2]
    return _snake_case(name)


def origin_of(annotation: Any) -> Optional[Any]:
    """`typing.List` of `typing.List[int]`; None for what has no arguments."""
    origin = typing.get_origin(annotation)
    if origin is None or not typing.get_args(annotation):
        return None
    if isinstance(annotation, getattr(types, "UnionType", ())):
        return typing.Union
    name = getattr(annotation, "_name", None)
    if isinstance(annotation, types.GenericAlias) or origin is typing.Union:
        return origin
    return getattr(typing, name, origin) if name else origin


def is_operator(target: Any) -> bool:
    """Whether a target is of Python's module operator."""
    return getattr(target, "__module__", None) == "_operator" and hasattr(
        operator, getattr(target, "__name__", "")
    )
