"""Decorators of pipes that say something of them: that two runs may differ, that types are looked
at."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Iterator, Optional, Type, TypeVar, Union

from .datapipe import IterDataPipe, refuse_if_determinism_is_guaranteed

F = TypeVar("F", bound=Callable[..., Any])


class non_deterministic:  # noqa: N801  PyTorch's name
    """Decorates a class of pipes of which two runs may differ, so that
    guaranteed_datapipes_determinism() refuses to make one (TypeError). With a function of the
    arguments only those are refused for which it is True; TypeError where it returns no bool.

        @non_deterministic(lambda pipe, sort: not sort)
        class Files(IterDataPipe): ...
    """

    def __init__(self, arg: Union[Type[IterDataPipe], Callable[..., bool]]) -> None:
        self.cls: Any = None
        self.deterministic_fn: Optional[Callable[..., bool]] = None
        if isinstance(arg, type):
            self.cls = self._checked(arg)
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(
                f"non_deterministic: expected a class of pipes or a function, got {arg!r}"
            )

    @staticmethod
    def _checked(cls: Any) -> Any:
        if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
            raise TypeError(
                "non_deterministic: expected a class derived from IterDataPipe, got "
                f"{getattr(cls, '__name__', cls)}"
            )
        return cls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            refuse_if_determinism_is_guaranteed(self.cls.__name__)
            return self.cls(*args, **kwargs)
        (cls,) = args
        cls, differs = self._checked(cls), self.deterministic_fn

        @functools.wraps(cls)
        def make(*arguments: Any, **keywords: Any) -> IterDataPipe:
            answer = differs(*arguments, **keywords)  # type: ignore[misc]
            if not isinstance(answer, bool):
                raise TypeError(
                    "non_deterministic: expected the function to return a bool, got "
                    f"{type(answer).__name__}"
                )
            if answer:
                refuse_if_determinism_is_guaranteed(cls.__name__)
            return cls(*arguments, **keywords)

        return make


def argument_validation(f: F) -> F:
    """Decorates the __init__ of a pipe whose arguments have annotations; TypeError for what is no
    function. Annotations of pipes (`IterDataPipe[int]`) say nothing at run time, in PyTorch of
    today too, so nothing is refused."""
    if not inspect.isfunction(f):
        raise TypeError(f"argument_validation: expected a function, got {f!r}")
    return f


_is_validated = True


class runtime_validation_disabled:  # noqa: N801  PyTorch's name
    """A block in which runtime_validation() looks at nothing."""

    def __init__(self) -> None:
        global _is_validated
        self.prev, _is_validated = _is_validated, False

    def __enter__(self) -> None:
        """It began when it was made."""

    def __exit__(self, *error: Any) -> None:
        global _is_validated
        _is_validated = self.prev


def runtime_validation(f: Callable[[Any], Iterator]) -> Callable[[Any], Iterator]:
    """Decorates the __iter__ of a pipe that has a `type` with issubtype_of_instance(sample): a
    sample for which that is False raises RuntimeError. Raises TypeError for another method, and,
    where the pipe is gone through, AttributeError if it has no `type`."""
    if getattr(f, "__name__", None) != "__iter__":
        name = getattr(f, "__name__", f)
        raise TypeError(f"runtime_validation: expected the method __iter__, got {name}")

    @functools.wraps(f)
    def checked(self: Any) -> Iterator:
        for sample in f(self):
            if _is_validated and not self.type.issubtype_of_instance(sample):
                raise RuntimeError(
                    f"{type(self).__name__}: expected samples of the type {self.type}, got "
                    f"{sample!r} of {type(sample).__name__}"
                )
            yield sample

    return checked
