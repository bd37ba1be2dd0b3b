"""The device of new tensors where none is given, each thread's own.

Example:

    treadle.set_default_device("meta")
    with treadle.device("cpu"):            # or @treadle.device("cpu")
        x = treadle.zeros(2)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import threading
from typing import Any, Callable

from treadle import _C


class _Entered(threading.local):
    """The default device before each `with` block that is open."""

    def __init__(self) -> None:
        self.before: list = []


_entered = _Entered()


def set_default_device(device: Any) -> None:
    """Make new tensors on a device where none is given; None is the CPU."""
    _C._exchange_default_device(device)


def _enter(self: _C.device) -> _C.device:
    _entered.before.append(_C._exchange_default_device(self))
    return self


def _exit(self: _C.device, *_: object) -> None:
    _C._exchange_default_device(_entered.before.pop())


def _decorate(self: _C.device, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def on_device(*args: Any, **kwargs: Any) -> Any:
        with self:
            return function(*args, **kwargs)

    return on_device


def install() -> None:
    """Makes devices contexts and decorators."""
    for name, method in {"__enter__": _enter, "__exit__": _exit, "__call__": _decorate}.items():
        setattr(_C.device, name, method)
