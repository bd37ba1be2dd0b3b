"""Small functions for signatures: sorting a graph, grouping, names of types."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from collections import OrderedDict
from typing import Any, Callable, Dict, Hashable, Iterable, List, Mapping, Tuple


def raises(err: Any, lamda: Callable[[], Any]) -> bool:
    """Whether the call raises that exception; another goes on to the caller."""
    try:
        lamda()
    except err:
        return True
    return False


def expand_tuples(L: Iterable[Any]) -> List[Tuple[Any, ...]]:
    """Every choice of one member from each tuple of the list; the first place changes fastest.

    >>> expand_tuples([1, (2, 3)])
    [(1, 2), (1, 3)]
    """
    places = [item if isinstance(item, tuple) else (item,) for item in L]
    return [choice[::-1] for choice in itertools.product(*places[::-1])]


def reverse_dict(d: Mapping[Any, Iterable[Any]]) -> "OrderedDict[Any, Tuple[Any, ...]]":
    """From key -> values to value -> the keys that have it, in their order."""
    found: "OrderedDict[Any, Tuple[Any, ...]]" = OrderedDict()
    for key, values in d.items():
        for value in values:
            found[value] = (*found.get(value, ()), key)
    return found


def _toposort(edges: Mapping[Any, Iterable[Any]]) -> List[Any]:
    """The keys so that each comes before those that its values name. ValueError for a cycle."""
    before: Dict[Any, set] = {key: set(names) for key, names in reverse_dict(edges).items()}
    ready = [key for key in edges if key not in before]
    order = []
    while ready:
        key = ready.pop()
        order.append(key)
        for later in edges.get(key, ()):
            waiting = before[later]
            waiting.discard(key)
            if not waiting:
                ready.append(later)
    if any(before.values()):
        raise ValueError("toposort: expected edges without a cycle, got a cycle")
    return order


def groupby(func: Callable[[Any], Hashable], seq: Iterable[Any]) -> "OrderedDict[Any, List[Any]]":
    """The items by what the function says of them, in order of appearance."""
    groups: "OrderedDict[Any, List[Any]]" = OrderedDict()
    for item in seq:
        groups.setdefault(func(item), []).append(item)
    return groups


def typename(type: Any) -> str:
    """A type's name; of several in a tuple, the names in parentheses."""
    if not isinstance(type, (tuple, list)):
        return getattr(type, "__name__", str(type))
    names = ", ".join(map(typename, type))
    return names if len(type) == 1 else f"({names})"


__all__ = ["expand_tuples", "groupby", "raises", "reverse_dict", "typename"]
