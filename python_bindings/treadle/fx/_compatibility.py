"""The mark of what stays as it is from one version to the next."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, TypeVar

T = TypeVar("T", bound=Any)


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """A decorator that gives the object back as it is, with the mark written on it."""

    def mark(fn: T) -> T:
        fn._backwards_compatible = is_backward_compatible
        return fn

    return mark
