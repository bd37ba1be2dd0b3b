"""What programs say to the compiler behind treadle.compile. There is none: programs run as written,
and these return what they are given.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, List, TypeVar

from treadle import _names
from treadle._compile import compile as compile
from treadle._dynamo import (  # noqa: F401
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)

F = TypeVar("F", bound=Callable[..., Any])

_STANCES = (
    "default",
    "eager_on_recompile",
    "fail_on_recompile",
    "force_eager",
    "eager_then_compile",
)


def is_dynamo_compiling() -> bool:
    """Whether the code runs inside a compiler: never."""
    return is_compiling()


def is_exporting() -> bool:
    """Whether the code is being exported: never."""
    return False


def cudagraph_mark_step_begin() -> None:
    """The beginning of a step, for recorded graphs of a device: there are none."""


def nested_compile_region(fn: F) -> F:
    """The function, as it is."""
    return fn


def wrap_numpy(fn: F) -> F:
    """The function, as it is."""
    return fn


def substitute_in_graph(original_fn: Callable[..., Any], **_: Any) -> Callable[[F], F]:
    """A decorator that leaves its function, and the original one, as they are."""
    return lambda function: function


class set_stance(contextlib.ContextDecorator):  # noqa: N801
    """How a compiler should behave from here on, in a block or in a function. RuntimeError for a
    stance that is not known."""

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: Any = None,
    ) -> None:
        if stance not in _STANCES:
            raise RuntimeError(f"set_stance: expected one of {', '.join(_STANCES)}, got {stance!r}")

    def __enter__(self) -> set_stance:
        return self

    def __exit__(self, *_: Any) -> None:
        pass


__getattr__ = _names.attributes_of(__name__)


def __dir__() -> List[str]:
    return sorted(globals())
