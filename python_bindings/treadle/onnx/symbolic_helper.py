"""Decorators of the symbolic functions that programs give to an exporter."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def parse_args(*arg_descriptors: str) -> Callable[[F], F]:
    """A decorator that says what the arguments of a symbolic function are: `@parse_args("v", "i")`.
    The function comes back as it is, since no exporter calls it."""

    def decorate(fn: F) -> F:
        return fn

    return decorate


def quantized_args(*arg_q_descriptors: bool, **settings: Any) -> Callable[[F], F]:
    """As parse_args(), of which arguments may be quantized."""
    return parse_args()


__all__ = ["parse_args", "quantized_args"]
