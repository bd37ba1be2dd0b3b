"""An exception on its way to another thread or process, which raises it again.

Example:

    try:
        work()
    except Exception:
        send(ExceptionWrapper(where="in thread 3"))     # there: received.reraise()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pickle
import sys
import traceback
from typing import Any, Optional, Tuple


class ExceptionWrapper:
    """The type of an exception, if that can travel, and its traceback as text; of the exception
    that is being handled, unless `exc_info` is what sys.exc_info() gave for another."""

    def __init__(self, exc_info: Optional[Tuple] = None, where: str = "in background") -> None:
        kind, error, lines = exc_info or sys.exc_info()
        self.where = where
        self.exc_msg = "".join(traceback.format_exception(kind, error, lines))
        # Whatever would end the process or, quietly, a loop travels as a RuntimeError.
        plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
        self.exc_type: Any = kind if plain else RuntimeError
        try:
            pickle.dumps(self.exc_type)
        except Exception:
            self.exc_type = RuntimeError

    def reraise(self) -> None:
        """Raise the same type of exception, whose message has the traceback. RuntimeError where the
        type takes no message alone."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        kind = _ReadableKeyError if self.exc_type is KeyError else self.exc_type
        try:
            error = kind(message)
        except Exception:
            error = RuntimeError(message)
        try:
            raise error
        finally:
            # The exception holds this frame; the frame must not hold the exception.
            del error


class _ReadableKeyError(KeyError):
    """A KeyError shows its message as repr would; a traceback is to keep its lines."""

    def __str__(self) -> str:
        return self.args[0]
