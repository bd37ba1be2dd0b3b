"""Hooks: functions kept in an ordered dictionary under a number, and the handle that takes one out
again."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import OrderedDict
from typing import Any, Callable

_next_id = itertools.count()


class RemovableHandle:
    """The result of registering a hook; `remove()` takes the hook away. Works as a context manager
    too. `hooks_dict_ref()` is the dictionary, None when it is gone."""

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = next(_next_id)
        given = () if extra_dict is None else extra_dict
        extras = given if isinstance(given, (tuple, list)) else (given,)
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.extra_dict_ref = tuple(weakref.ref(holder) for holder in extras)

    def remove(self) -> None:
        """Take the hook away; doing it twice does no harm."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            holder = reference()
            if holder is not None:
                holder.pop(self.id, None)

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()

    def __getstate__(self) -> tuple:
        holders = (self.hooks_dict_ref, *self.extra_dict_ref)
        return (self.id, tuple(reference() for reference in holders))

    def __setstate__(self, state: tuple) -> None:
        self.id, (hooks_dict, *extras) = state
        # A dictionary that was gone already is an empty one, which nothing else holds.
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks_dict is None else hooks_dict)
        self.extra_dict_ref = tuple(weakref.ref(one) for one in extras if one is not None)


def add(
    hooks: dict, hook: Callable, flags: tuple, prepend: bool, every_flag: tuple = ()
) -> RemovableHandle:
    """Register `hook` in `hooks`, and its number in each of `flags`, which say how to call it."""
    handle = RemovableHandle(hooks, extra_dict=every_flag)
    hooks[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)  # type: ignore[attr-defined]
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
