"""Linear algebra: `linalg.solve(A, b)`, `linalg.svd(A)`, `linalg.norm(x)`, ...

Every operator `linalg_NAME` of the library is here as NAME. Matrices lie in the last two
dimensions; what comes before them is a batch.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle import _C
from treadle._C import _LinAlgError as LinAlgError  # noqa: F401  a public name

_PREFIX = "linalg_"


def __getattr__(name: str) -> Any:
    function = getattr(_C._linalg, _PREFIX + name, None)
    if function is None:
        raise AttributeError(f"module 'treadle.linalg' has no attribute '{name}'")
    globals()[name] = function
    return function


def __dir__() -> list:
    operators = [n[len(_PREFIX) :] for n in dir(_C._linalg) if n.startswith(_PREFIX)]
    return sorted({"LinAlgError", *operators})


__all__ = __dir__()
