"""Classes with some of their arguments given: what a QConfig holds.

Example:

    observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
    observer()                       # MinMaxObserver(quant_min=0, quant_max=127)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict


class _PartialWrapper:
    """A callable with keyword arguments given, and with some that are computed for each call."""

    def __init__(self, p: Any) -> None:
        self.p = p
        self.callable_args: Dict[str, Callable[[], Any]] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        computed = {k: make() for k, make in self.callable_args.items() if k not in keywords}
        return self.p(*args, **keywords, **computed)

    def __repr__(self) -> str:
        return f"{self.p!r}{self.callable_args!r}"

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        """The same callable with further arguments given."""
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Callable[[], Any]) -> _PartialWrapper:
        """The same callable with arguments whose values are computed when it is called."""
        made = _PartialWrapper(self.p)
        made.callable_args = {**self.callable_args, **kwargs}
        return made


def _with_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    """A factory of the class, or of what the wrapper makes, with arguments given."""
    return _PartialWrapper(partial(cls_or_self, **kwargs))


def _with_callable_args(cls_or_self: Any, **kwargs: Callable[[], Any]) -> _PartialWrapper:
    """A factory whose arguments are computed when it is called."""
    return _PartialWrapper(partial(cls_or_self)).with_callable_args(**kwargs)


def same_factory(first: Any, second: Any) -> bool:
    """Whether two factories make the same: equal classes, or equal classes and arguments."""
    if not (isinstance(first, _PartialWrapper) and isinstance(second, _PartialWrapper)):
        return first == second
    mine, other = dict(first.p.keywords), dict(second.p.keywords)
    if "observer" in mine and "observer" in other:
        if not same_factory(mine.pop("observer"), other.pop("observer")):
            return False
    calls_alike = first.p.func == second.p.func and first.p.args == second.p.args
    return calls_alike and mine == other
