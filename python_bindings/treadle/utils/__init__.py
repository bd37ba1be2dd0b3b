"""Tools around training: data loading, and handles of hooks."""

from . import data, hooks

__all__ = ["data", "hooks"]
