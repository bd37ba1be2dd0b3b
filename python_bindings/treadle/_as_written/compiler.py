"""The functions that instruct the compiler behind treadle.compile. There is none: programs run as
written, and these functions return their arguments.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from typing import Any, Callable, List, TypeVar

from treadle._as_written.dynamo import is_compiling

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


def nested_compile_region(
    fn: Any = None, options: Any = None, max_reuse_entries: int = 8, reuse_hash_fn: Any = None
) -> Any:
    """The function, as it is; without one a decorator that gives it back."""
    return fn if fn is not None else lambda function: function


def wrap_numpy(fn: F) -> F:
    """The function, as it is."""
    return fn


def substitute_in_graph(original_fn: Callable[..., Any], **_: Any) -> Callable[[F], F]:
    """A decorator that leaves its function, and the original one, as they are."""
    return lambda function: function


def nonstrict_trace(traceable_fn: F) -> F:
    """The function, as it is."""
    return traceable_fn


def cudagraph_mark_warmup_incomplete() -> None:
    """Asks graphs of a device to wait until it is warm. There are no such graphs: does nothing."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Whether processes should decide together what to compile; gives what it was. Kept, and
    changes nothing."""
    global _guard_collectives
    before, _guard_collectives = _guard_collectives, bool(enabled)
    return before


_guard_collectives = False


def save_cache_artifacts() -> None:
    """The compiled code, to be loaded elsewhere. Nothing is compiled, so it is None."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """Take what save_cache_artifacts() gave: nothing is done with it."""


def _all_kept(name: str) -> Callable[[List[Any]], List[bool]]:
    def function(guard_entries: List[Any], keep_parameters: bool = False) -> List[bool]:
        return [True] * len(guard_entries)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Which conditions of compiled code to check: all."
    return function


skip_all_guards_unsafe = _all_kept("skip_all_guards_unsafe")
skip_guard_on_all_nn_modules_unsafe = _all_kept("skip_guard_on_all_nn_modules_unsafe")
skip_guard_on_globals_unsafe = _all_kept("skip_guard_on_globals_unsafe")
skip_guard_on_inbuilt_nn_modules_unsafe = _all_kept("skip_guard_on_inbuilt_nn_modules_unsafe")
keep_portable_guards_unsafe = _all_kept("keep_portable_guards_unsafe")
keep_tensor_guards_unsafe = _all_kept("keep_tensor_guards_unsafe")


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
