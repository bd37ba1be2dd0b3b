"""The content of a store, and what can be done with it: what all kinds of stores have in common.

table.apply(Request("set", ("a", "b"), (b"1", b"2")))   # []
table.apply(Request("get", ("a", "b")))                 # [b"1", b"2"]
table.apply(Request("get", ("c",)))                     # None: the answer has to wait
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import deque
from typing import Callable, Deque, Dict, List, NamedTuple, Optional, Tuple


class Request(NamedTuple):
    """An action, the keys that it concerns, and values."""

    action: str
    keys: Tuple[str, ...] = ()
    values: Tuple[bytes, ...] = ()


Answer = Optional[List[bytes]]  # None while the answer has to wait

# The actions that change nothing where they have an answer. A store in a file does not record them.
READING = frozenset(["get", "wait", "reach", "check", "count", "list", "length"])


def _number(action: str, key: str, value: bytes) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(
            f"{action}: expected a number as the value of {key!r}, got {value[:40]!r}"
        ) from None


class Table:
    """Values and queues, by key."""

    def __init__(self) -> None:
        self._values: Dict[str, bytes] = {}
        self._queues: Dict[str, Deque[bytes]] = {}

    def apply(self, request: Request) -> Answer:
        """The answer to a request; None where it has to wait for other requests. ValueError for a
        request that cannot be answered."""
        do = _ACTIONS.get(request.action)
        if do is None:
            raise ValueError(f"store: expected a known action, got {request.action!r}")
        return do(self, request)

    def _has(self, key: str) -> bool:
        return key in self._values or bool(self._queues.get(key))

    def _set(self, request: Request) -> Answer:
        self._values.update(zip(request.keys, request.values))
        return []

    def _get(self, request: Request) -> Answer:
        if not all(key in self._values for key in request.keys):
            return None
        return [self._values[key] for key in request.keys]

    def _wait(self, request: Request) -> Answer:
        return [] if all(map(self._has, request.keys)) else None

    def _check(self, request: Request) -> Answer:
        return [str(int(all(map(self._has, request.keys)))).encode()]

    def _add(self, request: Request) -> Answer:
        (key,), (amount,) = request.keys, request.values
        total = _number("add", key, self._values.get(key, b"0")) + _number("add", key, amount)
        self._values[key] = str(total).encode()
        return [self._values[key]]

    def _reach(self, request: Request) -> Answer:
        (key,), (wanted,) = request.keys, request.values
        found = _number("reach", key, self._values.get(key, b"0"))
        return [str(found).encode()] if found >= int(wanted) else None

    def _compare_set(self, request: Request) -> Answer:
        (key,), (expected, desired) = request.keys, request.values
        found = self._values.get(key)
        if found == expected or (found is None and not expected):
            found = self._values[key] = desired
        return [expected if found is None else found]

    def _append(self, request: Request) -> Answer:
        (key,), (value,) = request.keys, request.values
        self._values[key] = self._values.get(key, b"") + value
        return []

    def _delete(self, request: Request) -> Answer:
        (key,) = request.keys
        found = self._values.pop(key, None) is not None
        found = self._queues.pop(key, None) is not None or found
        return [str(int(found)).encode()]

    def _count(self, request: Request) -> Answer:
        (prefix,) = request.keys
        return [str(sum(1 for key in self._values if key.startswith(prefix))).encode()]

    def _list(self, request: Request) -> Answer:
        (prefix,) = request.keys
        return [key.encode() for key in self._values if key.startswith(prefix)]

    def _push(self, request: Request) -> Answer:
        (key,), (value,) = request.keys, request.values
        self._queues.setdefault(key, deque()).append(value)
        return []

    def _pop(self, request: Request) -> Answer:
        (key,) = request.keys
        found = self._queues.get(key)
        if not found:
            return None
        value = found.popleft()
        if not found:
            del self._queues[key]
        return [value]

    def _length(self, request: Request) -> Answer:
        (key,) = request.keys
        return [str(len(self._queues.get(key, ()))).encode()]


_ACTIONS: Dict[str, Callable[[Table, Request], Answer]] = {
    "set": Table._set,
    "get": Table._get,
    "wait": Table._wait,
    "check": Table._check,
    "add": Table._add,
    "reach": Table._reach,
    "compare_set": Table._compare_set,
    "append": Table._append,
    "delete": Table._delete,
    "count": Table._count,
    "list": Table._list,
    "push": Table._push,
    "pop": Table._pop,
    "length": Table._length,
}
