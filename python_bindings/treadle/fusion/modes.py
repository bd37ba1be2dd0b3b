"""Where operators wait: in a block, in a function, or everywhere."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, List, Optional

from treadle import _C
from treadle.autograd.grad_mode import _Mode

# Elements of a result from which on waiting pays: measured by benchmarks/fusion.py.
DEFAULT_LEAST = 131072

_NEVER: int = _C._DEFER_NEVER


def _checked(name: str, least: Any) -> int:
    if isinstance(least, bool) or not isinstance(least, int):
        raise TypeError(f"{name}: expected an int for argument 'least', got {type(least).__name__}")
    if least < 0:
        raise ValueError(f"{name}: expected argument 'least' >= 0, got {least}")
    return min(least, _NEVER)


class _Fuse(_Mode):
    def __init__(self, least: int) -> None:
        self._least = least
        self._previous: List[Optional[int]] = []

    def _clone(self) -> _Fuse:
        return _Fuse(self._least)

    def __enter__(self) -> None:
        self._previous.append(_C._exchange_deferral(self._least))

    def __exit__(self, *exc: Any) -> None:
        _C._exchange_deferral(self._previous.pop())


def fuse(
    function: Optional[Callable] = None, *, least: int = DEFAULT_LEAST, enabled: bool = True
) -> Any:
    """Let operators of this thread wait: in a block, or in a function that this decorates.

    A result waits if it has at least `least` elements. `enabled=False` makes a block inside another
    in which nothing waits. What waits at the end of a block goes on waiting.
    """
    mode = _Fuse(_checked("fuse", least) if enabled else _NEVER)
    if function is None:
        return mode
    if not callable(function):
        raise TypeError(f"fuse: expected a function, got {type(function).__name__}")
    return mode(function)  # @fuse without parentheses


def enable(*, least: int = DEFAULT_LEAST, compile: bool = False) -> None:
    """Operators of all threads wait, where no `fuse` block says otherwise.

    A result waits if it has at least `least` elements. With `compile`, loops that run often are
    compiled in the background by this machine's C++ compiler, also those of `fuse` blocks; without
    a compiler the operators' own loops go on. The bits are the same.
    """
    _C._set_deferral_everywhere(_checked("enable", least))
    if compile or _C._is_compiling():
        from .compilation import set_compiling

        set_compiling(compile)


def disable() -> None:
    """Ends what `enable` began. What waits goes on waiting."""
    _C._set_deferral_everywhere(_NEVER)
    _C._set_compiling(False)


def is_enabled() -> bool:
    """Whether operators of this thread may wait now."""
    return _C._least_deferred() != _NEVER
