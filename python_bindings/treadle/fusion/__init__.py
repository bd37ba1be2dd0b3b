"""Fusion: operators that wait, and are computed together when something looks at a result.

    with treadle.fuse():
        y = (x * scale + shift).sigmoid() * gate     # one pass over memory, not four

    @treadle.fuse
    def swiglu(a, b):
        return a * treadle.sigmoid(a) * b

    treadle.fusion.enable()                          # for all threads, until disable()
    treadle.fusion.enable(compile=True)              # and compiles loops that run often

Operators on elements wait. Their arguments are checked at the call, so that errors come there. A
result is computed when its data is needed: by an operator of another kind, `item`, NumPy, printing,
a write to what it was computed from. Its bits are those that it has without fusion. Only results of
at least `least` elements wait: below, a call costs less than the notes about it.

`explain(x)` shows the groups in which what waits would be computed.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from .compilation import CompiledLoops, compiled_loops, finish_compiling
from .explanation import Explanation, explain
from .group import Group, Read, Step
from .modes import DEFAULT_LEAST, disable, enable, fuse, is_enabled

__all__ = [
    "CompiledLoops",
    "DEFAULT_LEAST",
    "Explanation",
    "Group",
    "Read",
    "Step",
    "compiled_loops",
    "disable",
    "enable",
    "explain",
    "finish_compiling",
    "fuse",
    "is_enabled",
]
