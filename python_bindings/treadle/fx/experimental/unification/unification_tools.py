"""Functions of dicts that leave their arguments as they are, as those of the package toolz.

`factory` makes the dict that is returned; it is called without arguments.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import Any, Callable, Dict, Iterable, List, Sequence

Factory = Callable[[], Any]


def _dicts(given: Sequence[Any]) -> Sequence[Any]:
    """Those that are given one by one, or all in one list."""
    return given[0] if len(given) == 1 and not isinstance(given[0], Mapping) else given


def _factory(function: str, kwargs: Dict[str, Any]) -> Factory:
    factory = kwargs.pop("factory", dict)
    if kwargs:
        raise TypeError(f"{function}: expected no keyword but factory, got {', '.join(kwargs)}")
    return factory


def _filled(factory: Factory, items: Iterable[Any]) -> Any:
    made = factory()
    for key, value in items:
        made[key] = value
    return made


def merge(*dicts: Any, **kwargs: Any) -> Any:
    """One dict of several; of equal keys the last counts."""
    factory = _factory("merge", kwargs)
    return _filled(factory, (item for d in _dicts(dicts) for item in d.items()))


def merge_with(func: Callable, *dicts: Any, **kwargs: Any) -> Any:
    """One dict of several, with what the function makes of the list of the values of each key.

    >>> merge_with(sum, {1: 1, 2: 2}, {1: 10})
    {1: 11, 2: 2}
    """
    factory = _factory("merge_with", kwargs)
    values: Dict[Any, List[Any]] = {}
    for d in _dicts(dicts):
        for key, value in d.items():
            values.setdefault(key, []).append(value)
    return _filled(factory, ((key, func(found)) for key, found in values.items()))


def valmap(func: Callable, d: Mapping[Any, Any], factory: Factory = dict) -> Any:
    """The dict with the function of each value."""
    return _filled(factory, ((key, func(value)) for key, value in d.items()))


def keymap(func: Callable, d: Mapping[Any, Any], factory: Factory = dict) -> Any:
    """The dict with the function of each key."""
    return _filled(factory, ((func(key), value) for key, value in d.items()))


def itemmap(func: Callable, d: Mapping[Any, Any], factory: Factory = dict) -> Any:
    """The dict with the function of each pair, which gives a pair."""
    return _filled(factory, map(func, d.items()))


def valfilter(predicate: Callable, d: Mapping[Any, Any], factory: Factory = dict) -> Any:
    """The items whose value fits."""
    return _filled(factory, (item for item in d.items() if predicate(item[1])))


def keyfilter(predicate: Callable, d: Mapping[Any, Any], factory: Factory = dict) -> Any:
    """The items whose key fits."""
    return _filled(factory, (item for item in d.items() if predicate(item[0])))


def itemfilter(predicate: Callable, d: Mapping[Any, Any], factory: Factory = dict) -> Any:
    """The items that fit, as pairs."""
    return _filled(factory, (item for item in d.items() if predicate(item)))


def assoc(d: Mapping[Any, Any], key: Any, value: Any, factory: Factory = dict) -> Any:
    """The dict with that value for the key."""
    return _filled(factory, [*d.items(), (key, value)])


def dissoc(d: Mapping[Any, Any], *keys: Any, **kwargs: Any) -> Any:
    """The dict without these keys."""
    left_out = set(keys)
    return _filled(
        _factory("dissoc", kwargs), (item for item in d.items() if item[0] not in left_out)
    )


def assoc_in(d: Mapping[Any, Any], keys: Any, value: Any, factory: Factory = dict) -> Any:
    """The dict with that value at a path of keys through dicts inside of it.

    >>> assoc_in({"a": {"c": 1}}, ["a", "b"], 2)
    {'a': {'c': 1, 'b': 2}}
    """
    return update_in(d, keys, lambda _: value, value, factory)


def update_in(
    d: Mapping[Any, Any], keys: Any, func: Callable, default: Any = None, factory: Factory = dict
) -> Any:
    """The dict with the function of what is at a path of keys, or of `default` where nothing is;
    dicts on the path that are missing are made by `factory`."""
    if not keys:
        raise ValueError("update_in: expected at least one key, got none")
    key, *rest = keys
    if rest:
        inner = d[key] if key in d else factory()
        changed = update_in(inner, rest, func, default, factory)
    else:
        changed = func(d[key] if key in d else default)
    return assoc(d, key, changed, factory)


def get_in(keys: Any, coll: Any, default: Any = None, no_default: bool = False) -> Any:
    """The item at a path of keys through dicts and sequences; `default` where nothing is, or the
    exception of the look-up if `no_default`.

    >>> get_in(["a", 0], {"a": [5]})
    5
    """
    try:
        return functools.reduce(operator.getitem, keys, coll)
    except (KeyError, IndexError, TypeError):
        if no_default:
            raise
        return default


def getter(index: Any) -> Callable[[Any], Any]:
    """The function that gives the item at an index, or a tuple of those at a list of indices."""
    if not isinstance(index, list):
        return operator.itemgetter(index)
    return lambda item: tuple(item[i] for i in index)


def groupby(key: Any, seq: Iterable[Any]) -> Dict[Any, List[Any]]:
    """The items by a function of each, or by what each has at that index.

    >>> groupby(len, ["a", "bb", "c"])
    {1: ['a', 'c'], 2: ['bb']}
    """
    of = key if callable(key) else getter(key)
    groups: Dict[Any, List[Any]] = {}
    for item in seq:
        groups.setdefault(of(item), []).append(item)
    return groups


def first(seq: Iterable[Any]) -> Any:
    """The first item. StopIteration if there is none."""
    return next(iter(seq))


__all__ = [
    "assoc",
    "assoc_in",
    "dissoc",
    "get_in",
    "itemfilter",
    "itemmap",
    "keyfilter",
    "keymap",
    "merge",
    "merge_with",
    "update_in",
    "valfilter",
    "valmap",
]
