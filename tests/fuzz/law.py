"""What an exception of the library may be: its type, and the law of messages.

    conv2d: expected stride > 0, got stride = (0, 1)

The operator, what was expected, what came; at most six lines; no internal names.
"""

from __future__ import annotations

import re
from typing import Optional

import treadle

ALLOWED: tuple[type[BaseException], ...] = (
    TypeError,
    ValueError,
    IndexError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    ZeroDivisionError,
    MemoryError,
    BufferError,  # of DLPack and the buffer protocol
    treadle.OutOfMemoryError,
)
MOST_LINES, MOST_CHARACTERS = 6, 1500
NAMED = r"[\w.]+(\(\))?: "
INTERNAL = (
    r"treadle::|aten::|std::|terminate|0x[0-9a-f]{6,}|internal error|INTERNAL|bad_alloc|\bImpl\b|"
    r"\bu?int\d+_t\b|\bsize_t\b|\bC (long|int|double)\b|long long|pybind|PyObject|"
    r"__cxx|basic_string|vector<|optional<|Invoked with|incompatible function arguments|"
    r"\.(cc|cpp|h|hpp|so)\b|/(usr|home|work|tmp|root)/|Traceback|Assertion|not a bug"
)
_NAMED, _INTERNAL = re.compile(NAMED), re.compile(INTERNAL)
# What a caller's own object raised comes through as it is.
OF_A_STRANGER = "stranger: "


def breach(error: BaseException, by_hand: bool = False) -> Optional[tuple[str, str]]:
    """What is wrong with an exception: kind and detail; None where nothing is. Functions that are
    written `by_hand` in Python, or that Python itself calls, may answer as Python does.
    """
    message = str(error)
    if isinstance(error, treadle.InternalError):
        return "internal error", message
    if by_hand and isinstance(error, (*ALLOWED, AttributeError)):
        return None
    if not isinstance(error, ALLOWED):
        return "exception of another type", f"{type(error).__name__}: {message}"
    if message.startswith(OF_A_STRANGER):
        return None
    if not message:
        return "empty message", type(error).__name__
    if len(message.splitlines()) > MOST_LINES:
        return "message of too many lines", message
    if len(message) > MOST_CHARACTERS:
        return "message too long", message
    if _INTERNAL.search(message):
        return "message with internal names", message
    # Python itself refuses a method's `self` of another type, and runs out of stack or memory.
    of_python = isinstance(error, (TypeError, RecursionError, MemoryError))
    if not of_python and not _NAMED.match(message):
        return "message that names no operator", f"{type(error).__name__}: {message}"
    return None
