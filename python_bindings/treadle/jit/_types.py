"""jit.isinstance: whether a value has a type with arguments: List[int], Dict[str, Tensor].

Looks at every element, since a list does not know the type of its elements.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
import typing
from typing import Any, Union

# With types.UnionType, `int | None`, where Python has it.
_UNIONS = tuple(
    kind for kind in (Union, getattr(__import__("types"), "UnionType", None)) if kind is not None
)


def _is_of(value: Any, wanted: Any) -> bool:
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted is Any:
        return True
    if wanted is None:
        return value is None
    if origin is None:
        return builtins.isinstance(value, wanted)
    if origin in _UNIONS:
        return any(_is_of(value, option) for option in arguments)
    if not builtins.isinstance(value, origin):
        return False
    if origin in (list, set, frozenset):
        return all(_is_of(item, arguments[0]) for item in value)
    if origin is dict:
        key, item = arguments
        return all(_is_of(k, key) and _is_of(v, item) for k, v in value.items())
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(_is_of(item, arguments[0]) for item in value)
        return len(value) == len(arguments) and all(map(_is_of, value, arguments))
    raise RuntimeError(f"jit.isinstance: expected a list, dict, tuple or union type, got {wanted}")


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001
    """Whether `obj` has the type, elements and all; or one of a tuple of types. RuntimeError for a
    container without the types of its elements."""
    options = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    for option in options:
        if option in (typing.List, typing.Dict, typing.Tuple, typing.Optional, typing.Union):
            raise RuntimeError(
                f"jit.isinstance: expected a type with the types of its elements, got {option}"
            )
    return any(_is_of(obj, option) for option in options)
