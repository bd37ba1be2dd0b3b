"""Tools of pipes: see `common`."""

from __future__ import annotations

from treadle import _names

__getattr__ = _names.attributes_of(__name__)
