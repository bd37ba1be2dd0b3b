"""The types of results with named parts, by the operator's name.

    values, indices = treadle.sort(x)
    isinstance(treadle.sort(x), treadle.return_types.sort)
"""

from __future__ import annotations

from treadle import _C

_types = _C._return_types()
globals().update(_types)

__all__ = sorted(name for name in _types if not name.startswith("_"))
