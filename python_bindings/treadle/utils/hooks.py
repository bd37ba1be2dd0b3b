"""Hooks: functions kept in an ordered dictionary under a number, and the handle that takes one out
again."""

from __future__ import annotations

import itertools
import warnings
import weakref
from typing import Any, Callable

_next_id = itertools.count()


class RemovableHandle:
    """What registering a hook returns; `remove()` takes the hook away. Works as a context manager
    too."""

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = next(_next_id)
        given = () if extra_dict is None else extra_dict
        extras = given if isinstance(given, (tuple, list)) else (given,)
        self._holders = tuple(weakref.ref(holder) for holder in (hooks_dict, *extras))

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


def unserializable_hook(f: Callable) -> Callable:
    """Mark a hook as one that a tensor need not keep when it is saved, so that nothing warns."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of the hooks of a tensor that saving it loses."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"saving a tensor loses its hook {getattr(hook, '__name__', hook)!r}; mark it with "
                "utils.hooks.unserializable_hook where that is meant",
                stacklevel=2,
            )
