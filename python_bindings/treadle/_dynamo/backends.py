"""The names by which treadle.compile knows compilers: of those that a program registered, the
function is given the graph; the others run programs as written."""

# SPDX-License-Identifier: Apache-2.0

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
    takes a GraphModule and its example inputs, and returns a function of such inputs."""
    if compiler_fn is None:
        return lambda function: register_backend(function, name=name, tags=tags)
    if not callable(compiler_fn):
        raise TypeError(f"register_backend: expected a function, got {type(compiler_fn).__name__}")
    _registered[name or compiler_fn.__name__] = (compiler_fn, tuple(tags))
    return compiler_fn


def check_backend(backend: Any) -> Optional[Callable[..., Any]]:
    """The function that a backend is, None for a compiler that is not here. InvalidBackend for a
    name that is not known."""
    if not isinstance(backend, str):
        return backend
    if backend not in list_backends(()):
        raise InvalidBackend(backend)
    return _registered[backend][0] if backend in _registered else None


def lookup_backend(compiler_fn: Any) -> Callable[..., Any]:
    """The function of a name; one that runs the graph as it is for the compilers' names."""
    found = check_backend(compiler_fn)
    return found if found is not None else _as_it_is


def _as_it_is(gm: Any, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    return gm.forward
