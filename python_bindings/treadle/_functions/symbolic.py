"""Functions for sizes that may be symbols to a compiler; here they are numbers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Iterable


def sym_int(a: Any) -> int:
    """The integer towards zero."""
    return int(a)


def sym_float(a: Any) -> float:
    """As a float."""
    return float(a)


def sym_not(a: Any) -> bool:
    """not a."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The greater one; a float where one is."""
    greater = max(a, b)
    return float(greater) if isinstance(a, float) or isinstance(b, float) else greater


def sym_min(a: Any, b: Any) -> Any:
    """The smaller one; a float where one is."""
    smaller = min(a, b)
    return float(smaller) if isinstance(a, float) or isinstance(b, float) else smaller


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_sum(*args: Any) -> Any:
    """The sum of the arguments, or of those in one list."""
    values: Iterable[Any] = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
    return sum(values)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """t if b, else f."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError(
            f"sym_ite: expected a bool and two values of one type, got {type(b).__name__}, "
            f"{type(t).__name__} and {type(f).__name__}"
        )
    return t if b else f
