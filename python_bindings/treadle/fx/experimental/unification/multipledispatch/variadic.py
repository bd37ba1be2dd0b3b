"""Variadic[int]: the type of a signature's last place that takes any number of ints."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Tuple

from treadle.fx.experimental.unification.multipledispatch.utils import typename


class VariadicSignatureType(type):
    """The type of `Variadic[int]`: types of which each is one of `variadic_type` are under it."""

    variadic_type: Tuple[type, ...]

    def __subclasscheck__(cls, subclass: type) -> bool:
        kinds = subclass.variadic_type if isvariadic(subclass) else (subclass,)  # type: ignore[attr-defined]
        return subclass is cls or all(issubclass(kind, cls.variadic_type) for kind in kinds)

    def __eq__(cls, other: object) -> bool:
        return isvariadic(other) and set(cls.variadic_type) == set(other.variadic_type)  # type: ignore[attr-defined]

    def __hash__(cls) -> int:
        return hash((type(cls), frozenset(cls.variadic_type)))


def isvariadic(obj: Any) -> Any:
    """Whether that is `Variadic[...]` of some types."""
    return isinstance(obj, VariadicSignatureType)


class VariadicSignatureMeta(type):
    """The type of `Variadic`, which takes types in brackets."""

    def __getitem__(cls, variadic_type: Any) -> Any:
        if not isinstance(variadic_type, (type, tuple, list)):
            got = type(variadic_type).__name__
            raise TypeError(f"Variadic: expected a type or a tuple of types, got a {got}")
        several = isinstance(variadic_type, (tuple, list))
        kinds = tuple(variadic_type) if several else (variadic_type,)  # type: ignore[arg-type]
        name = f"Variadic[{typename(kinds)}]"
        return VariadicSignatureType(name, (), {"variadic_type": kinds, "__slots__": ()})


class Variadic(metaclass=VariadicSignatureMeta):
    """`Variadic[int]` takes any number of ints, `Variadic[int, str]` any of ints and strings."""


__all__ = ["Variadic", "VariadicSignatureMeta", "VariadicSignatureType", "isvariadic"]
