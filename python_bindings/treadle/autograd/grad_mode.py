"""Switching the recording of operations on and off, for a block or a function.

Example:

    with treadle.no_grad():
        w -= 0.1 * w.grad

    @treadle.no_grad()
    def evaluate(model, x): ...
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import functools
import warnings
from typing import Any, Callable, Optional

from treadle import _C


class _Mode:
    """A context manager that is also a decorator. Generators switch the mode each time they run."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: Any) -> None:
        raise NotImplementedError

    def _clone(self) -> "_Mode":
        return type(self)()

    def __call__(self, function: Callable) -> Callable:
        import inspect  # here, for it would take a tenth of the time of `import treadle`

        if inspect.isclass(function):
            warnings.warn(
                f"{type(self).__name__}: decorating a class is deprecated, and is about its "
                "__init__ alone; decorate its methods",
                FutureWarning,
                stacklevel=2,
            )
            function.__init__ = self(function.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self._clone():
                return function(*args, **kwargs)

        return wrapper

    def _wrap_generator(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            generator = function(*args, **kwargs)
            step, value = generator.send, None
            while True:
                try:
                    with self._clone():
                        result = step(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    step, value = generator.send, (yield result)
                except GeneratorExit:
                    with self._clone():
                        generator.close()
                    raise
                except BaseException as error:
                    step, value = generator.throw, error

        return wrapper


class _GradMode(_Mode):
    """Sets whether operations are recorded, and puts it back."""

    _enabled: bool

    def __new__(cls, orig_func: Optional[Callable] = None) -> Any:
        mode = object.__new__(cls)
        if orig_func is None:
            return mode
        return mode(orig_func)  # @no_grad without parentheses

    def __enter__(self) -> None:
        self._previous = _C._set_grad_enabled(self._enabled)

    def __exit__(self, *exc: Any) -> None:
        _C._set_grad_enabled(self._previous)


class no_grad(_GradMode):
    """Operations in the block are not recorded."""

    _enabled = False


class enable_grad(_GradMode):
    """Operations in the block are recorded, inside no_grad() too."""

    _enabled = True


class set_grad_enabled(_Mode):
    """Sets recording at once; as a context manager it puts back what was before."""

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self._previous = _C._set_grad_enabled(self.mode)

    def __call__(self, function: Callable) -> Callable:
        _C._set_grad_enabled(self._previous)  # as a decorator it says nothing about now
        return super().__call__(function)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self.mode)

    def __exit__(self, *exc: Any) -> None:
        _C._set_grad_enabled(self._previous)

    def _clone(self) -> "set_grad_enabled":
        return type(self)(self.mode)


class inference_mode(_Mode):
    """Operations in the block are not recorded, and tensors made there can never be."""

    mode: bool

    def __new__(cls, mode: Any = True) -> Any:
        instance = object.__new__(cls)
        if isinstance(mode, bool):
            instance.mode = mode
            return instance
        instance.mode = True
        return instance(mode)  # @inference_mode without parentheses

    def __enter__(self) -> None:
        self._previous = _C._set_inference_mode(self.mode)
        self._previous_grad = _C._set_grad_enabled(not self.mode)

    def __exit__(self, *exc: Any) -> None:
        _C._set_inference_mode(self._previous)
        _C._set_grad_enabled(self._previous_grad)

    def _clone(self) -> "inference_mode":
        return type(self)(self.mode)


class _Switch(contextlib.AbstractContextManager):
    """A switch that is on from when it is made, as a function, or within a block."""

    _now = True

    def __init__(self, mode: bool = True) -> None:
        self._before, self.mode = type(self)._now, bool(mode)
        type(self)._now = self.mode

    def __exit__(self, *exc: Any) -> None:
        type(self)._now = self._before


class set_multithreading_enabled(_Switch):
    """Whether backward() may use threads of its own. It runs on the thread that calls it: the
    switch is kept and changes nothing."""

    def __init__(self, mode: bool) -> None:
        super().__init__(mode)


class enforce_grad_layout_policy(_Switch):
    """Whether gradients get the layout of their leaves: they always do, and the switch is kept."""

    def __init__(self, enable: bool = True) -> None:
        super().__init__(enable)


def is_multithreading_enabled() -> bool:
    """The last value given to set_multithreading_enabled()."""
    return set_multithreading_enabled._now
