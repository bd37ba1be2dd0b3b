"""FileStore: a store in a file that all processes can open.

The file has the requests that changed the store, one a line. A process replays those that came
since its last look, under a lock on the file.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
from typing import BinaryIO, Iterator, Tuple

from treadle.distributed._stores.base import Store
from treadle.distributed._stores.table import READING, Answer, Request, Table
from treadle.distributed.errors import DistStoreError

_POLL = 0.01  # seconds between looks at the file
_POLL_LOCK = 0.001  # and at its lock, which is kept for less than that


class FileStore(Store):
    """A store in a file that all processes can open; the file is made if it is not there."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = str(file_name)
        self._table = Table()
        self._file = (-1, -1)  # device and inode of the file that was replayed
        self._replayed = 0  # bytes of it
        self._looking = threading.Lock()

    def _place(self) -> str:
        return f"the store in {self.path}"

    def _ask(self, request: Request, seconds: float) -> Answer:
        deadline = time.monotonic() + seconds
        patience = seconds or self.timeout.total_seconds()
        while True:
            answer = self._once(request, patience)
            left = deadline - time.monotonic()
            if answer is not None or left <= 0:
                return answer
            time.sleep(min(_POLL, left))

    def _once(self, request: Request, patience: float) -> Answer:
        with self._locked(patience) as file:
            self._replay(file)
            answer = self._table.apply(request)
            if answer is not None and request.action not in READING:
                line = _line(request)
                file.write(line)
                file.flush()
                self._replayed += len(line)
            return answer

    @contextlib.contextmanager
    def _locked(self, patience: float) -> Iterator[BinaryIO]:
        """The file, for this thread alone. DistStoreError where others keep it for so many seconds:
        a process that is stopped, or, in a child of a fork, a thread of the parent's."""
        end = time.monotonic() + patience
        taken = DistStoreError(
            f"expected {self._place()} to be free within {patience:g} s, got one that another "
            "process or thread keeps locked"
        )
        if not self._looking.acquire(timeout=min(patience, threading.TIMEOUT_MAX)):
            raise taken
        try:
            with open(self.path, "a+b", opener=self._open) as file:
                while not _lock(file):
                    if time.monotonic() >= end:
                        raise taken
                    time.sleep(_POLL_LOCK)
                try:
                    yield file
                finally:
                    # Closing does not do where a child of a fork has the file open, too.
                    fcntl.flock(file, fcntl.LOCK_UN)
        finally:
            self._looking.release()

    def _open(self, path: str, flags: int) -> int:
        # Another process may have ended the store: its file does not come again.
        is_new = self._file == (-1, -1)
        try:
            return os.open(path, flags if is_new else flags & ~os.O_CREAT, 0o666)
        except FileNotFoundError:
            if is_new:
                raise
            raise DistStoreError(f"expected {self._place()}, got none: it has ended") from None

    def _replay(self, file: BinaryIO) -> None:
        descriptor = file.fileno()
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != self._file or found.st_size < self._replayed:
            self._table, self._replayed = Table(), 0
            self._file = (found.st_dev, found.st_ino)
        new = os.pread(descriptor, found.st_size - self._replayed, self._replayed)
        whole = new.rfind(b"\n") + 1
        for line in new[:whole].splitlines():
            self._table.apply(_request(line))
        self._replayed += whole
        if whole < len(new):  # a process ended while it wrote this
            os.ftruncate(descriptor, self._replayed)

    def clone(self) -> FileStore:
        """Another store in the same file."""
        made = FileStore(self.path)
        made.set_timeout(self.timeout)
        made._file = self._file  # which it does not make anew when it has ended
        return made

    def end(self) -> None:
        """Remove the file, when no process needs it any more."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


def _lock(file: BinaryIO) -> bool:
    """Lock the file, if no other process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _line(request: Request) -> bytes:
    values = [value.decode("latin-1") for value in request.values]
    return json.dumps([request.action, request.keys, values]).encode() + b"\n"


def _request(line: bytes) -> Request:
    action, keys, values = json.loads(line)
    made: Tuple[bytes, ...] = tuple(value.encode("latin-1") for value in values)
    return Request(action, tuple(keys), made)


__all__ = ["FileStore"]
