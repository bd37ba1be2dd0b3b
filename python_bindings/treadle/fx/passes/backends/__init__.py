"""Passes for one kind of device."""

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
