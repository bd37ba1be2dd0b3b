"""Dispatch keys as values: `DispatchKeySet(DispatchKey.AutocastCPU)`.

Kernels are chosen by device here, so that a set of keys chooses nothing, but for the layers that a
thread leaves out: `_ExcludeDispatchKeyGuard` of an Autocast or Autograd key skips that layer.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import enum
from typing import Any, FrozenSet, Iterable, Iterator, Optional

from treadle._library.keys import ALL_KEYS
from treadle._library.registration import below

DispatchKey = enum.Enum("DispatchKey", ALL_KEYS, module="torch._C")  # type: ignore[misc]


class DispatchKeySet:
    """A set of dispatch keys: of one, or `a | b`, `a & b`, `a - b`."""

    def __init__(self, key: Any) -> None:
        self._keys: FrozenSet[Any] = frozenset([key] if isinstance(key, DispatchKey) else key)

    def __or__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: "DispatchKeySet") -> "DispatchKeySet":
        return DispatchKeySet(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def has(self, key: Any) -> bool:
        """Whether a key is in it."""
        return key in self._keys

    def add(self, key: Any) -> "DispatchKeySet":
        """The set with one key more."""
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: Any) -> "DispatchKeySet":
        """The set without a key."""
        return DispatchKeySet(self._keys - {key})

    def highestPriorityTypeId(self) -> Any:  # noqa: N802
        """The key that comes last in the order of all."""
        return max(self._keys, key=list(DispatchKey).index, default=DispatchKey.Undefined)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(self._keys, key=list(DispatchKey).index))

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(key.name for key in self)})"


def _layers(keys: Iterable[Any]) -> Iterator[str]:
    for layer in ("autograd", "autocast"):
        if any(key.name.lower().startswith(layer) for key in keys):
            yield layer


class _ExcludeDispatchKeyGuard:
    """`with _ExcludeDispatchKeyGuard(keys):` skips what operators do for autograd or autocast."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self._keys = keys
        self._stack: Optional[contextlib.ExitStack] = None

    def __enter__(self) -> None:
        self._stack = contextlib.ExitStack()
        for layer in _layers(self._keys):
            self._stack.enter_context(below(layer))

    def __exit__(self, *error: Any) -> None:
        assert self._stack is not None
        self._stack.close()
