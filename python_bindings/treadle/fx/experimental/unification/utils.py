"""Small functions of unification: looking values up, and making structures hashable."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Mapping, Tuple

from treadle.fx.experimental.unification.multipledispatch import utils as _signatures
from treadle.fx.experimental.unification.multipledispatch.utils import raises


def hashable(x: Any) -> bool:
    """Whether a value has a hash."""
    try:
        hash(x)
    except TypeError:
        return False
    return True


def transitive_get(key: Any, d: Mapping[Any, Any]) -> Any:
    """The last value that a key leads to, where each value may be a key again.

    >>> transitive_get(1, {1: 2, 2: 3})
    3
    """
    while hashable(key) and key in d:
        found = d[key]
        if found is key:
            break
        key = found
    return key


def reverse_dict(d: Mapping[Any, Iterable[Any]]) -> Dict[Any, Tuple[Any, ...]]:
    """From key -> values to value -> the keys that have it, in their order."""
    return dict(_signatures.reverse_dict(d))


def xfail(func: Callable[[], Any]) -> None:
    """Call a function of which an exception is expected, and pass over it."""
    try:
        func()
    except Exception:  # noqa: BLE001, S110  any exception is the expected one
        pass


def freeze(d: Any) -> Any:
    """The same structure with a hash: tuples for lists, sets of pairs for dicts.

    >>> freeze([1, {2: [3]}])
    (1, frozenset({(2, (3,))}))
    """
    if isinstance(d, dict):
        return frozenset((key, freeze(value)) for key, value in d.items())
    if isinstance(d, (set, frozenset)):
        return frozenset(map(freeze, d))
    return tuple(map(freeze, d)) if isinstance(d, (tuple, list)) else d


__all__ = [
    "freeze",
    "hashable",
    "raises",
    "reverse_dict",
    "transitive_get",
    "xfail",
]
