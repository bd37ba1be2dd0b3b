"""The library's operators by name, for the layers of `nn`: `ops.linear(x, w, b)`.

Operators of `nn`, `linalg` and other modules live in their own parts of the extension module and
the rest beside them; a layer should not need to know which. A name is looked up once, at its first
use.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C

_PARTS = ("_nn", "_linalg", "_fft", "_special")


class _Operators:
    def __getattr__(self, name: str) -> Any:
        for holder in (*(getattr(_C, part) for part in _PARTS), _C):
            operator = getattr(holder, name, None)
            if operator is not None:
                setattr(self, name, operator)
                return operator
        raise AttributeError(f"operator '{name}' does not exist in treadle")


ops = _Operators()
