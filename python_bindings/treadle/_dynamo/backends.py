"""The names by which treadle.compile knows compilers. None of them is run; names are checked."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from treadle._dynamo.exc import InvalidBackend

_FOR_DEBUGGING = (
    "aot_eager",
    "aot_eager_decomp_partition",
    "aot_eager_default_partitioner",
    "aot_ts",
    "eager",
    "eager_debug",
    "eager_noexcept",
    "pre_dispatch_eager",
    "ts",
)
_COMPILERS = ("cudagraphs", "inductor", "onnxrt", "openxla", "tvm")
_registered: Dict[str, Tuple[Callable[..., Any], Sequence[str]]] = {}


def list_backends(exclude_tags: Optional[Sequence[str]] = ("debug", "experimental")) -> List[str]:
    """The names that treadle.compile takes, without those that have one of the tags."""
    excluded = set(exclude_tags or ())
    names = [name for name, (_, tags) in _registered.items() if not excluded & set(tags)]
    names += _COMPILERS
    return sorted(names if "debug" in excluded else [*names, *_FOR_DEBUGGING])


def register_backend(
    compiler_fn: Optional[Callable[..., Any]] = None,
    name: Optional[str] = None,
    tags: Sequence[str] = (),
) -> Any:
    """Make a name known: `register_backend(fn)` or `@register_backend(name="mine")`. The function
    is never called, as there are no graphs to give to it."""
    if compiler_fn is None:
        return lambda function: register_backend(function, name=name, tags=tags)
    if not callable(compiler_fn):
        raise TypeError(f"register_backend: expected a function, got {type(compiler_fn).__name__}")
    _registered[name or compiler_fn.__name__] = (compiler_fn, tuple(tags))
    return compiler_fn


def check_backend(backend: Any) -> None:
    """InvalidBackend for a name that is not known. A function is taken as it is."""
    if isinstance(backend, str) and backend not in list_backends(()):
        raise InvalidBackend(backend)
