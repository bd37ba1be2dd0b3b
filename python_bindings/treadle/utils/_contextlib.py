"""Contexts that also decorate functions, as those of programs do.

Example:

    class Quiet(_DecoratorContextManager):
        def __enter__(self): ...
        def __exit__(self, kind, error, trace): ...

    @Quiet()
    def f(): ...        # each call is inside a context of its own
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Generator, Optional, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def _wrap_generator(make: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """A generator that is inside a context while it computes, not while its caller does."""

    @functools.wraps(function)
    def steps(*args: Any, **kwargs: Any) -> Generator:
        generator = function(*args, **kwargs)
        resume: Callable[[], Any] = lambda: next(generator)  # noqa: E731
        while True:
            try:
                with make():
                    value = resume()
            except StopIteration as end:
                return end.value
            try:
                sent = yield value
                resume = functools.partial(generator.send, sent)
            except GeneratorExit:
                with make():
                    generator.close()
                raise
            except BaseException as error:
                resume = functools.partial(generator.throw, error)

    return steps


def context_decorator(ctx: Any, func: F) -> F:
    """The function, each call in a context: `ctx` itself, or what calling it gives."""
    if isinstance(func, type):
        raise RuntimeError(
            f"context_decorator: expected a function, got the class {func.__name__}; decorate its "
            "methods"
        )
    make = ctx if callable(ctx) and not hasattr(ctx, "__enter__") else lambda: ctx
    if inspect.isgeneratorfunction(func):
        return _wrap_generator(make, func)  # type: ignore[return-value]

    @functools.wraps(func)
    def inside(*args: Any, **kwargs: Any) -> Any:
        with make():
            return func(*args, **kwargs)

    return inside  # type: ignore[return-value]


class _DecoratorContextManager:
    """Base of contexts that decorate. A class whose __init__ takes arguments writes clone()."""

    def __enter__(self) -> Any:
        raise NotImplementedError("__enter__")

    def __exit__(self, kind: Any, error: Any, trace: Any) -> Optional[bool]:
        raise NotImplementedError("__exit__")

    def __call__(self, orig_func: F) -> F:
        return context_decorator(self.clone, orig_func)

    def clone(self) -> Any:
        """A context like this one, for one call."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context without arguments, whose class decorates as its objects do."""

    def __new__(cls, orig_func: Any = None) -> Any:
        context = super().__new__(cls)
        return context if orig_func is None else context(orig_func)
