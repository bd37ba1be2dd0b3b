"""Special functions: `special.entr(x)`, `special.zeta(x, q)`, ...

All are operators; those that `treadle` has as well, under a name of its own, compute the same.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C

# The operators of the module `special` are named special_entr, special_zeta, ...
_PREFIX = "special_"
__all__ = sorted(n[len(_PREFIX) :] for n in dir(_C._special) if n.startswith(_PREFIX))
globals().update({name: getattr(_C._special, _PREFIX + name) for name in __all__})


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module 'treadle.special' has no attribute '{name}'")
