"""`fx.wrap`: a mark for a tracer of programs. There is no tracer."""

from __future__ import annotations

from typing import Callable, TypeVar, Union

T = TypeVar("T", bound=Union[str, Callable])


def wrap(fn_or_name: T) -> T:
    """The function, or its name, as it is. (A tracer would not look into it.)"""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        kind = type(fn_or_name).__name__
        raise RuntimeError(f"fx.wrap: expected a function or its name, got {kind}")
    return fn_or_name


__all__ = ["wrap"]
