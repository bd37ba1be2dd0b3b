"""Tools around training: data loading, and handles of hooks."""

from .. import _names
from . import data, hooks

__getattr__ = _names.attributes_of(__name__)

__all__ = ["data", "hooks"]
