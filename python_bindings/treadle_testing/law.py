"""The law of messages: what a call that is refused raises, and what it says.

    conv2d: expected stride > 0, got stride = (0, 1)

The operator, what was expected, what came; at most six lines; no internal names.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import treadle

REFUSALS: tuple[type[BaseException], ...] = (
    TypeError,
    ValueError,
    IndexError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    treadle.OutOfMemoryError,
)
MOST_LINES = 6
NAMED = r"[\w.]+(\(\))?: "
INTERNAL = (
    r"treadle::|aten::|std::|terminate|0x[0-9a-f]{6,}|internal error|INTERNAL|bad_alloc|\bImpl\b|"
    r"\bu?int\d+_t\b|\bsize_t\b|\bC (long|int|double)\b|long long|pybind|PyObject|"
    r"__cxx|basic_string|vector<|optional<|Invoked with|incompatible function arguments|"
    r"\.(cc|cpp|h|hpp|so)\b|/(usr|home|work|tmp|root)/|Traceback|Assertion|not a bug"
)
