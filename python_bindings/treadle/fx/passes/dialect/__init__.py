"""Passes for graphs of one kind of steps."""

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
