"""Checks that programs make of what they are given: `treadle._check(n > 0, lambda: f"{n=}")`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Optional, Type, Union

from treadle import _C

_Message = Optional[Union[str, Callable[[], Any]]]


def _check_with(error: Type[Exception], cond: Any, message: _Message) -> None:
    """Raise `error` unless `cond` is true; `message` is text, or a function that makes it."""
    if not isinstance(cond, bool):
        raise TypeError(f"_check: expected cond to be a bool, got {type(cond).__name__}")
    if not cond:
        text = message() if callable(message) else message
        raise error("_check: expected the condition to hold" if text is None else str(text))


def _assert_async(self: _C.Tensor, assert_msg: str = "") -> None:
    """RuntimeError unless the one element is true."""
    if self.numel() != 1:
        raise RuntimeError(f"_assert_async: expected one element, got {self.numel()}")
    if not self.item():
        text = "expected the value to be true, got 0"
        raise RuntimeError(f"_assert_async: {assert_msg or text}")


def _check(cond: Any, message: _Message = None) -> None:
    """RuntimeError unless `cond` is true."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: _Message = None) -> None:
    """IndexError unless `cond` is true."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: _Message = None) -> None:
    """ValueError unless `cond` is true."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: _Message = None) -> None:
    """TypeError unless `cond` is true."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: _Message = None) -> None:
    """NotImplementedError unless `cond` is true."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: _Message = None, *, max: Any = None) -> None:  # noqa: A002
    """RuntimeError unless `i` can be a size: 0 or more, and at most `max`."""
    _check(bool(i >= 0), message or f"_check_is_size: expected a size of 0 or more, got {i}")
    if max is not None:
        _check(bool(i <= max), message or f"_check_is_size: expected at most {max}, got {i}")


def _check_tensor_all(cond: Any, message: _Message = None) -> None:
    """RuntimeError unless every element of a tensor of bools is true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_tensor_all_with(error: Type[Exception], cond: Any, message: _Message = None) -> None:
    """Raise `error` unless every element of a tensor of bools is true."""
    if not isinstance(cond, _C.Tensor) or cond.dtype != _C.bool:
        got = cond.dtype if isinstance(cond, _C.Tensor) else type(cond).__name__
        raise TypeError(f"_check_tensor_all: expected a tensor of bools, got {got}")
    _check_with(error, bool(cond.all()), message)
