"""The way from a tree to one of its leaves: the keys of the nodes on it.

Example:

    [(path, leaf), ...], spec = tree_flatten_with_path({"a": [x, y]})
    keystr(path)                # "['a'][0]"
    key_get(tree, path)         # the leaf
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from typing import Any, Generic, Mapping, Protocol, Sequence, Tuple, TypeVar

K = TypeVar("K")


class KeyEntry(Protocol):
    """One step of a path: printed as Python would write it, and taken by get()."""

    def __hash__(self) -> int: ...

    def __eq__(self, other: object) -> bool: ...

    def __str__(self) -> str: ...

    def get(self, parent: Any) -> Any:
        """The child of `parent` that the step leads to."""
        raise NotImplementedError


KeyPath = Tuple[KeyEntry, ...]


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The place in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Sequence[Any]) -> Any:
        """The item at the place."""
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey(Generic[K]):
    """The key in a dictionary."""

    key: K

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Mapping[K, Any]) -> Any:
        """The value of the key."""
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The name of an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The attribute of that name."""
        return getattr(obj, self.name)


def keystr(kp: KeyPath) -> str:
    """The path as Python would write it: "['a'][0].x"."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """The object at the end of a path from `obj`."""
    for key in kp:
        obj = key.get(obj)
    return obj
