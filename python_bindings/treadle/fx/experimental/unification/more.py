"""Objects of a program in unification, attribute by attribute."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Dict

from treadle.fx.experimental.unification.core import _reify, _unify, reify, unify


def unifiable(cls: type) -> type:
    """Take a class in: unify and reify go through the attributes of its objects. A decorator.

    >>> @unifiable
    ... class Point:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    >>> unify(Point(1, Var("y")), Point(1, 2), {})
    {~y: 2}
    """
    _unify.add((cls, cls, Mapping), unify_object)
    _reify.add((cls, Mapping), reify_object)
    return cls


def _attributes(o: Any) -> Dict[str, Any]:
    slots = getattr(type(o), "__slots__", None)
    return vars(o) if slots is None else {name: getattr(o, name) for name in slots}


def reify_object(o: Any, s: Mapping[Any, Any]) -> Any:
    """The object with values in place of variables in its attributes; itself if it has none."""
    before = _attributes(o)
    after = {name: reify(value, s) for name, value in before.items()}
    if after == before:
        return o
    made = object.__new__(type(o))
    for name, value in after.items():
        setattr(made, name, value)
    return made


def unify_object(u: Any, v: Any, s: Mapping[Any, Any]) -> Any:
    """unify() of the attributes of two objects; False where they are of different types."""
    return unify(_attributes(u), _attributes(v), s) if type(u) is type(v) else False


__all__ = ["reify_object", "unifiable", "unify_object"]
