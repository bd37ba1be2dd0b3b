"""The library's operators by name, for the layers of `nn`: `ops.linear(x, w, b)`.

Operators of `nn` live in their own part of the extension module and the rest beside it; a layer
should not need to know which. A name is looked up once, at its first use.
"""

from __future__ import annotations

from typing import Any

from treadle import _C


class _Operators:
    def __getattr__(self, name: str) -> Any:
        for holder in (getattr(_C, "_nn", None), _C):
            operator = getattr(holder, name, None)
            if operator is not None:
                setattr(self, name, operator)
                return operator
        raise AttributeError(f"operator '{name}' does not exist in treadle")


ops = _Operators()
