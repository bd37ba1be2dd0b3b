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
from typing import Tuple

from treadle.distributed._stores.base import Store
from treadle.distributed._stores.table import READING, Answer, Request, Table
from treadle.distributed.errors import DistStoreError

_POLL = 0.01  # seconds between looks at the file


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
        while True:
            with self._looking:
                answer = self._once(request)
            left = deadline - time.monotonic()
            if answer is not None or left <= 0:
                return answer
            time.sleep(min(_POLL, left))

    def _once(self, request: Request) -> Answer:
        with open(self.path, "a+b", opener=self._open) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._replay(file)
            answer = self._table.apply(request)
            if answer is not None and request.action not in READING:
                line = _line(request)
                file.write(line)
                file.flush()
                self._replayed += len(line)
            return answer

    def _open(self, path: str, flags: int) -> int:
        # Another process may have ended the store: its file does not come again.
        is_new = self._file == (-1, -1)
        try:
            return os.open(path, flags if is_new else flags & ~os.O_CREAT, 0o666)
        except FileNotFoundError:
            if is_new:
                raise
            raise DistStoreError(f"expected {self._place()}, got none: it has ended") from None

    def _replay(self, file: object) -> None:
        descriptor: int = file.fileno()  # type: ignore[attr-defined]
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
        return made

    def end(self) -> None:
        """Remove the file, when no process needs it any more."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


def _line(request: Request) -> bytes:
    values = [value.decode("latin-1") for value in request.values]
    return json.dumps([request.action, request.keys, values]).encode() + b"\n"


def _request(line: bytes) -> Request:
    action, keys, values = json.loads(line)
    made: Tuple[bytes, ...] = tuple(value.encode("latin-1") for value in values)
    return Request(action, tuple(keys), made)


__all__ = ["FileStore"]
