"""Tools around training: data loading, and handles of hooks."""

from typing import Any

from .. import _names
from . import data, hooks

_OF_BACKENDS = ("generate_methods_for_privateuse1_backend", "rename_privateuse1_backend")

_module = _names.attributes_of(__name__)


def __getattr__(name: str) -> Any:
    if name in _OF_BACKENDS:
        return getattr(_module("backend_registration"), name)
    return _module(name)


__all__ = ["data", "hooks"]
