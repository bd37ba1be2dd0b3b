"""Kernels for meta tensors: what an operator's results look like, without their values."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextvars
import functools
from typing import Any, Callable, NoReturn, Optional

_context: "contextvars.ContextVar[Optional[FakeImplCtx]]" = contextvars.ContextVar(
    "fake_context", default=None
)


class FakeImplCtx:
    """The result of get_ctx() within a fake kernel."""

    def __init__(self, name: str) -> None:
        self._name = name

    def new_dynamic_size(self, *, min: int = 0, max: Optional[int] = None) -> NoReturn:  # noqa: A002
        """RuntimeError: a size that depends on data is not known for meta tensors."""
        raise RuntimeError(
            f"{self._name}: expected sizes that depend on sizes only, as meta tensors have no "
            "data, got a call of get_ctx().new_dynamic_size()"
        )

    create_unbacked_symint = new_dynamic_size


def get_ctx() -> Optional[FakeImplCtx]:
    """Within a function given to register_fake its context; else None."""
    return _context.get()


def as_meta_kernel(name: str, function: Callable) -> Callable:
    """The function, with a context for the time of a call."""
    context = FakeImplCtx(name)

    @functools.wraps(function)
    def kernel(*args: Any, **kwargs: Any) -> Any:
        token = _context.set(context)
        try:
            return function(*args, **kwargs)
        finally:
            _context.reset(token)

    return kernel
