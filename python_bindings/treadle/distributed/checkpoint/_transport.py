"""Plans, metadata and errors as bytes, from one process to another.

Only the classes of this package, plain values, and classes that the program allows with
serialization.add_safe_globals() are read: what comes runs no code here.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
import collections
import io
import pickle
import traceback
from typing import Any, Dict, Tuple

from treadle import _C, serialization
from treadle.distributed.checkpoint import _metadata_file, metadata, planner, storage
from treadle.distributed.checkpoint.api import (
    WRAPPED_EXCEPTION,
    CheckpointException,
    _is_wrapped_exception,
)

_PLAIN = (set, frozenset, complex, bytearray, slice, range, collections.OrderedDict, _C.Size)


def _allowed() -> Dict[Tuple[str, str], Any]:
    from treadle.distributed.checkpoint import filesystem

    own = [
        *(getattr(module, name) for module in (metadata, planner) for name in module.__all__),
        metadata._MEM_FORMAT_ENCODING,
        storage.WriteResult,
        filesystem._StoragePrefix,
        _metadata_file.StorageInfo,
        *_PLAIN,
    ]
    return {(kind.__module__, kind.__qualname__): kind for kind in own}


class _Unpickler(pickle.Unpickler):
    """Finds no names but those that are allowed, and the library's dtypes and layouts."""

    def find_class(self, module: str, name: str) -> Any:
        found = _allowed_names.get((module, name))
        if found is None:
            found = next(
                (
                    kind
                    for kind in serialization.get_safe_globals()
                    if isinstance(kind, type)
                    and (kind.__module__, kind.__qualname__) == (module, name)
                ),
                None,
            )
        if found is None:
            found = _CONSTANTS.get(f"{module}.{name}")
        if found is None:
            raise pickle.UnpicklingError(
                f"expected plain data in a plan, got {module}.{name}"[:200]
                + "; serialization.add_safe_globals() allows a class"
            )
        return found


def _constant(value: Any) -> Dict[str, Any]:
    """The names by which a pickle has a dtype or a layout, or what makes it."""
    reduced = value.__reduce_ex__(4)
    if isinstance(reduced, str):
        module = getattr(value, "__module__", None) or type(value).__module__
        return {f"{module}.{reduced}": value}
    function = reduced[0]
    return {f"{function.__module__}.{function.__qualname__}": function}


def _constants() -> Dict[str, Any]:
    kinds = (_C.dtype, _C.layout, _C.memory_format)
    found: Dict[str, Any] = {}
    for name in dir(_C):
        value = getattr(_C, name)
        if isinstance(value, kinds):
            found.update(_constant(value))
    return found


_CONSTANTS = _constants()
_allowed_names: Dict[Tuple[str, str], Any] = {}


def packed(value: Any) -> bytes:
    """The bytes of a value."""
    return pickle.dumps(_without_exceptions(value))


def unpacked(content: bytes) -> Any:
    """The value of bytes. pickle.UnpicklingError for one with classes that are not allowed."""
    if not _allowed_names:
        _allowed_names.update(_allowed())
    return _with_exceptions(_Unpickler(io.BytesIO(content)).load())


def _plain(wrapped: WRAPPED_EXCEPTION) -> Tuple[str, str, list]:
    error, stack = wrapped
    frames = [(f.filename, f.lineno, f.name, f.line) for f in stack]
    return type(error).__qualname__, str(error), frames


def _wrapped(plain: Any) -> WRAPPED_EXCEPTION:
    name, text, frames = plain
    kind = getattr(builtins, name, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind, text = RuntimeError, f"{name}: {text}"
    try:
        error = kind(text)
    except TypeError:  # one that needs more arguments
        error = RuntimeError(f"{name}: {text}")
    return error, traceback.StackSummary.from_list(frames)


def _without_exceptions(value: Any) -> Tuple[str, Any]:
    if _is_wrapped_exception(value):
        return "error", _plain(value)
    if isinstance(value, CheckpointException):
        failures = {rank: _plain(wrapped) for rank, wrapped in value.failures.items()}
        return "failure", (value.args[0], failures)
    return "value", value


def _with_exceptions(message: Tuple[str, Any]) -> Any:
    kind, value = message
    if kind == "error":
        return _wrapped(value)
    if kind == "failure":
        step, failures = value
        return CheckpointException(step, {rank: _wrapped(p) for rank, p in failures.items()})
    return value


__all__ = ["packed", "unpacked"]
