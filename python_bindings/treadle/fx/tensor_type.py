"""Types of tensors by their sizes: `TensorType((1, 3, Dyn))`, whose last size may be any."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterator, Sequence, Tuple


class TensorType:
    """The type of the tensors of some sizes, of which each is a number, a symbol, or Dyn."""

    def __init__(self, dim: Sequence[Any]) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Sequence[Any]:
        """The sizes."""
        return self.__args__

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, TensorType) and list(self.__args__) == list(other.__args__)

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    @staticmethod
    def __class_getitem__(*args: Any) -> "TensorType":
        (given,) = args
        return TensorType(given if isinstance(given, tuple) else (given,))

    def __repr__(self) -> str:
        return f"TensorType[{self.__args__}]"


class _DynType:
    """The type of Dyn: any type, or any size."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _DynType)

    def __hash__(self) -> int:
        return hash(_DynType)

    def __repr__(self) -> str:
        return "Dyn"


Dyn = _DynType()


def _pairs(t1: TensorType, t2: TensorType) -> Iterator[Tuple[Any, Any]]:
    return zip(t1.__args__, t2.__args__)


def _have_as_many(t1: Any, t2: Any) -> bool:
    both = isinstance(t1, TensorType) and isinstance(t2, TensorType)
    return both and len(t1.__args__) == len(t2.__args__)


def is_consistent(t1: Any, t2: Any) -> bool:
    """Whether a value may be of both types, as each Dyn may be anything."""
    if t1 == t2 or t1 == Dyn or t2 == Dyn:
        return True
    return _have_as_many(t1, t2) and all(is_consistent(a, b) for a, b in _pairs(t1, t2))


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Whether every value of the first type is of the second."""
    if t1 == t2 or t2 == Dyn:
        return True
    return _have_as_many(t1, t2) and all(is_more_precise(a, b) for a, b in _pairs(t1, t2))


__all__ = ["Dyn", "TensorType", "is_consistent", "is_more_precise"]
