"""Hooks: functions kept in an ordered dictionary under a number, and the handle that takes one out
again."""

from __future__ import annotations

import itertools
import weakref
from typing import Any, Callable

_next_id = itertools.count()


class RemovableHandle:
    """What registering a hook returns; `remove()` takes the hook away. Works as a context manager
    too."""

    def __init__(self, hooks: dict, *, extra_dict: Any = ()) -> None:
        self.id = next(_next_id)
        extras = extra_dict if isinstance(extra_dict, (tuple, list)) else (extra_dict,)
        self._holders = tuple(weakref.ref(holder) for holder in (hooks, *extras))

    def remove(self) -> None:
        """Take the hook away; doing it twice does no harm."""
        for reference in self._holders:
            holder = reference()
            if holder is not None:
                holder.pop(self.id, None)

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()

    def __getstate__(self) -> tuple:
        return (self.id, tuple(reference() for reference in self._holders))

    def __setstate__(self, state: tuple) -> None:
        self.id, holders = state
        self._holders = tuple(weakref.ref(holder) for holder in holders if holder is not None)


def add(
    hooks: dict, hook: Callable, flags: tuple, prepend: bool, every_flag: tuple = ()
) -> RemovableHandle:
    """Register `hook` in `hooks`, and its number in each of `flags`, which say how to call it."""
    handle = RemovableHandle(hooks, extra_dict=every_flag)
    hooks[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle
