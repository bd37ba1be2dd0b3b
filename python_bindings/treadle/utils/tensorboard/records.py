"""An event file: records one after another, each with its length and two checksums.

The name of the file begins with `events.out.tfevents.`, by which TensorBoard finds it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import os
import socket
import struct
import threading
import time
import weakref
from typing import BinaryIO, Optional

from . import _wire
from ._crc import masked_crc32c

_VERSION = "brain.Event:2"
_START = 1  # of SessionStatus
_numbers = itertools.count()


def record(content: bytes) -> bytes:
    """One record of a file."""
    length = struct.pack("<Q", len(content))
    checks = struct.pack("<I", masked_crc32c(length)), struct.pack("<I", masked_crc32c(content))
    return length + checks[0] + content + checks[1]


def event(content: bytes, step: Optional[int], walltime: Optional[float]) -> bytes:
    """An Event message around one of the things that it may hold."""
    return _wire.message(
        _wire.double(1, time.time() if walltime is None else walltime),
        _wire.integer(2, 0 if step is None else int(step)),
        content,
    )


class FileWriter:
    """Appends events to a new file in `log_dir`. An event added is in the file after `max_queue`
    events, after `flush_secs` seconds when the next one comes, and when the program ends."""

    def __init__(
        self, log_dir: str, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""
    ) -> None:
        self._log_dir = os.fspath(log_dir)
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._suffix = filename_suffix
        self._lock = threading.Lock()
        self._open_file()

    def _open_file(self) -> None:
        os.makedirs(self._log_dir, exist_ok=True)
        name = (
            f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}."
            f"{os.getpid()}.{next(_numbers)}{self._suffix}"
        )
        self._file: BinaryIO = open(os.path.join(self._log_dir, name), "wb")
        self._finish = weakref.finalize(self, self._file.close)
        self._waiting = 0
        self._flushed = time.monotonic()
        self._file.write(record(event(_wire.text(3, _VERSION), None, None)))
        self._file.flush()

    def get_logdir(self) -> str:
        """The folder that the file is in."""
        return self._log_dir

    def add(self, content: bytes, step: Optional[int], walltime: Optional[float]) -> None:
        """Append an event. A file that was closed is followed by a new one."""
        made = record(event(content, step, walltime))
        with self._lock:
            if self._file.closed:
                self._open_file()
            self._file.write(made)
            self._waiting += 1
            late = time.monotonic() - self._flushed > self._flush_secs
            if self._waiting >= self._max_queue or late:
                self._flush()

    def restart(self, step: int) -> None:
        """Say that the run begins anew at `step`: readers forget what came after it before."""
        self.add(_wire.text(3, _VERSION), step, None)
        self.add(_wire.data(7, _wire.integer(1, _START)), step, None)

    def add_summary(
        self,
        summary: bytes,
        global_step: Optional[int] = None,
        walltime: Optional[float] = None,
    ) -> None:
        """Append a summary: values with their tags."""
        self.add(_wire.data(5, summary), global_step, walltime)

    def add_graph(self, graph: bytes, walltime: Optional[float] = None) -> None:
        """Append a graph."""
        self.add(_wire.data(4, graph), None, walltime)

    def _flush(self) -> None:
        self._file.flush()
        self._waiting = 0
        self._flushed = time.monotonic()

    def flush(self) -> None:
        """Bring what was added to the file."""
        with self._lock:
            if not self._file.closed:
                self._flush()

    def close(self) -> None:
        """Bring what was added to the file and close it."""
        with self._lock:
            self._finish()

    def reopen(self) -> None:
        """Go on in a new file if this one is closed."""
        with self._lock:
            if self._file.closed:
                self._open_file()
