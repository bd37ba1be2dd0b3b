"""The trace of a worker that failed: a file with its exception, which record() writes and
the agent reads.

    @record
    def main(): ...

The file is the one that TORCHELASTIC_ERROR_FILE names; without it record() changes nothing.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import socket
import time
import traceback
from datetime import datetime
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar

_VARIABLE = "TORCHELASTIC_ERROR_FILE"
T = TypeVar("T")


class ErrorHandler:
    """Writes exceptions to the error file of this process."""

    def initialize(self) -> None:
        """Called before the function of a worker: Python then shows where it was when a signal of
        an error ends it."""
        import faulthandler

        if not faulthandler.is_enabled():
            faulthandler.enable()

    def record_exception(self, e: BaseException) -> None:
        """Write an exception and its traceback to the error file, if there is one."""
        path = os.environ.get(_VARIABLE)
        if not path:
            return
        text = "".join(traceback.format_exception(type(e), e, e.__traceback__))
        said = {
            "message": f"{type(e).__name__}: {e}",
            "extraInfo": {"py_callstack": text, "timestamp": str(int(time.time()))},
        }
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"message": said}, file)

    def copy_error_file(self, rootcause_error_file: str) -> None:
        """Make the error file of a worker that of this process."""
        path = os.environ.get(_VARIABLE)
        if path and os.path.abspath(path) != os.path.abspath(rootcause_error_file):
            shutil.copyfile(rootcause_error_file, path)


def get_error_handler() -> ErrorHandler:
    """The writer that record() uses."""
    return ErrorHandler()


class ProcessFailure:
    """How a worker failed: by an exit code, or a signal, whose number is negative there."""

    def __init__(self, local_rank: int, pid: int, exitcode: int, error_file: str) -> None:
        self.local_rank = local_rank
        self.pid = pid
        self.exitcode = exitcode
        self.error_file = error_file
        self.error_file_data: Dict[str, Any] = {}
        self.message: Any = ""
        self.timestamp = int(time.time())
        if os.path.isfile(error_file):
            self._read()
        else:
            self.error_file = "<N/A>"
        if not self.message:
            self.message = self._ending()

    def _read(self) -> None:
        try:
            with open(self.error_file, encoding="utf-8") as file:
                self.error_file_data = json.load(file)
            self.message = self.error_file_data["message"]
            if isinstance(self.message, dict):
                self.timestamp = int(self.message["extraInfo"]["timestamp"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.message = f"its error file cannot be read: {error}"

    def _ending(self) -> str:
        if self.exitcode < 0:
            return f"ended by {self.signal_name()}"
        return f"ended with exit code {self.exitcode}"

    def signal_name(self) -> str:
        """The name of the signal that ended it; `<N/A>` if none did."""
        if self.exitcode >= 0:
            return "<N/A>"
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return f"signal {-self.exitcode}"

    def timestamp_isoformat(self) -> str:
        """When it failed, as text."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")

    def _lines(self, rank: int) -> List[str]:
        lines = [
            f"  rank {rank} (local rank {self.local_rank}, pid {self.pid}) on "
            f"{socket.gethostname()}, {self.timestamp_isoformat()}: {self._ending()}",
            f"    error file: {self.error_file}",
        ]
        if isinstance(self.message, dict):
            text = self.message.get("extraInfo", {}).get("py_callstack", "")
            lines += [f"    {line}" for line in str(text).rstrip().splitlines()]
        elif self.error_file_data:
            lines += [f"    {self.message}"]
        else:
            lines += ["    a traceback: decorate the main function with @record"]
        return lines


class ChildFailedError(Exception):
    """Workers failed: `failures` by rank. The text is the summary; the first failure is the likely
    cause of the others."""

    def __init__(self, name: str, failures: Dict[int, ProcessFailure]) -> None:
        self.name = name
        self.failures = failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> Tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        rank = min(self.failures, key=lambda rank: self.failures[rank].timestamp)
        return rank, self.failures[rank]

    def format_msg(self) -> str:
        """The summary."""
        if not self.failures:
            return f"{self.name}: expected all workers to succeed, but those elsewhere failed"
        first, failure = self.get_first_failure()
        lines = [f"{self.name} failed. The first failure:", *failure._lines(first)]
        others = [rank for rank in sorted(self.failures) if rank != first]
        if others:
            lines.append("Other failures:")
        for rank in others:
            lines += self.failures[rank]._lines(rank)[:2]
        return "\n".join(lines)

    def __reduce__(self) -> tuple:
        return type(self), (self.name, self.failures)


def record(
    fn: Callable[..., T], error_handler: Optional[ErrorHandler] = None
) -> Callable[..., Optional[T]]:
    """A function that does the same, and writes an exception to the error file before it raises it.
    Of a ChildFailedError it keeps the error file of the first failure."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Optional[T]:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as error:
            if error.code not in (None, 0):
                handler.record_exception(error)
            raise
        except ChildFailedError as error:
            failure = error.get_first_failure()[1] if error.failures else None
            if failure is not None and os.path.isfile(failure.error_file):
                handler.copy_error_file(failure.error_file)
            else:
                handler.record_exception(error)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return wrapped


__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]
