"""Tools around training: data loading, and handles of hooks."""

# SPDX-License-Identifier: Apache-2.0

from typing import Any

from .. import _names

_OF_BACKENDS = ("generate_methods_for_privateuse1_backend", "rename_privateuse1_backend")

_module = _names.attributes_of(
    __name__, {"get_cpp_backtrace": "cpp_backtrace", "swap_tensors": "_swap_tensors"}
)


def set_module(obj: Any, mod: Any) -> None:
    """Say in which module something is, in place of where it was written."""
    if not isinstance(mod, str):
        raise TypeError(f"set_module: expected the name of a module, got {type(mod).__name__}")
    obj.__module__ = mod


def __getattr__(name: str) -> Any:
    if name in _OF_BACKENDS:
        return getattr(_module("backend_registration"), name)
    return _module(name)


__all__ = ["data", "hooks"]
