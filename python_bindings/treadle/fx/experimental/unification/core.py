"""unify and reify, over the structures of Python; `_unify` and `_reify` take other types in."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from treadle.fx.experimental.unification.dispatch import dispatch
from treadle.fx.experimental.unification.unification_tools import assoc
from treadle.fx.experimental.unification.utils import transitive_get as walk
from treadle.fx.experimental.unification.variable import isvar

# ruff: noqa: F811  each is one function by types
# mypy: disable-error-code="no-redef"


@dispatch(Iterator, Mapping)
def _reify(t: Any, s: Any) -> Any:
    return (reify(item, s) for item in t)


@dispatch(tuple, Mapping)
def _reify(t: Any, s: Any) -> Any:
    return tuple(reify(list(t), s))


@dispatch(list, Mapping)
def _reify(t: Any, s: Any) -> Any:
    return [reify(item, s) for item in t]


@dispatch(dict, Mapping)
def _reify(d: Any, s: Any) -> Any:
    return {key: reify(value, s) for key, value in d.items()}


@dispatch(slice, Mapping)
def _reify(o: Any, s: Any) -> Any:
    return slice(*reify((o.start, o.stop, o.step), s))


@dispatch(object, Mapping)
def _reify(o: Any, s: Any) -> Any:
    return o


def reify(e: Any, s: Any) -> Any:
    """The structure with values in place of the variables that the dict `s` has."""
    if isvar(e):
        return reify(s[e], s) if e in s else e
    return _reify(e, s)


@dispatch((tuple, list, Iterator), (tuple, list, Iterator), Mapping)
def _unify(u: Any, v: Any, s: Any) -> Any:
    ours, theirs = list(u), list(v)
    if len(ours) != len(theirs):
        return False
    for one, other in zip(ours, theirs):
        s = unify(one, other, s)
        if s is False:
            return False
    return s


@dispatch(dict, dict, Mapping)
def _unify(u: Any, v: Any, s: Any) -> Any:
    if u.keys() != v.keys():
        return False
    return unify(list(u.values()), [v[key] for key in u], s)


@dispatch(slice, slice, Mapping)
def _unify(u: Any, v: Any, s: Any) -> Any:
    return unify((u.start, u.stop, u.step), (v.start, v.stop, v.step), s)


@dispatch(object, object, Mapping)
def _unify(u: Any, v: Any, s: Any) -> Any:
    return False


@dispatch(object, object, Mapping)
def unify(u: Any, v: Any, s: Any) -> Any:
    """The values of variables, a dict with those of `s` too, that make `u` and `v` equal; False if
    there are none.

    >>> unify((1, Var("x")), (1, 2), {})
    {~x: 2}
    """
    u, v = walk(u, s), walk(v, s)
    if u == v:
        return s
    if isvar(u):
        return assoc(s, u, v)
    return assoc(s, v, u) if isvar(v) else _unify(u, v, s)


@dispatch(object, object)
def unify(u: Any, v: Any) -> Any:
    """The same, from no values."""
    return unify(u, v, {})


__all__ = ["reify", "unify"]
