"""Whether an exception of the library is one that it may raise: its type, and the law of messages
(operators/law.py)."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from typing import Optional

import treadle
from treadle_testing.law import INTERNAL, MOST_LINES, NAMED, REFUSALS

ALLOWED: tuple[type[BaseException], ...] = (
    *REFUSALS,
    ZeroDivisionError,
    MemoryError,
    BufferError,  # of DLPack and the buffer protocol
)
MOST_CHARACTERS = 1500
_NAMED, _INTERNAL = re.compile(NAMED), re.compile(INTERNAL)
# An exception of a caller's own object comes through as it is.
OF_A_STRANGER = "stranger: "


def breach(error: BaseException, by_hand: bool = False) -> Optional[tuple[str, str]]:
    """The fault of an exception: kind and detail; None where there is none. Functions that are
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
