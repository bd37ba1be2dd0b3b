"""Shows what workers write to files, as they write it: each line begins with its worker's name.

[trainer0]:epoch 1
[trainer1]:epoch 1
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import threading
from typing import Any, BinaryIO, Dict, List, Optional

_CHUNK = 1 << 16


class TailLog:
    """Copies the lines of `log_files`, by local rank, to `dst`, in a thread.

    A line begins with that of `log_line_prefixes`, by default `[{name}{local rank}]:`. With
    `log_line_filter`, only lines that contain one of these texts are copied.
    """

    def __init__(
        self,
        name: str,
        log_files: Dict[int, str],
        dst: Any,
        log_line_prefixes: Optional[Dict[int, str]] = None,
        interval_sec: float = 0.1,
        log_line_filter: Optional[List[str]] = None,
    ) -> None:
        self._files = log_files
        self._to = dst
        self._prefixes = {
            rank: (log_line_prefixes or {}).get(rank, f"[{name}{rank}]:") for rank in log_files
        }
        self._interval = interval_sec
        self._filter = log_line_filter
        self._open: Dict[int, BinaryIO] = {}
        self._rest: Dict[int, bytes] = dict.fromkeys(log_files, b"")
        self._stopping = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def start(self) -> TailLog:
        """Begin; nothing happens where there are no files."""
        if self._files:
            self._thread = threading.Thread(target=self._run, name="tail", daemon=True)
            self._thread.start()
        return self

    def stop(self) -> None:
        """Copy what is there, and end."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def stopped(self) -> bool:
        """Whether stop() was called."""
        return self._stopping.is_set()

    def _run(self) -> None:
        try:
            while not self._stopping.wait(self._interval):
                self._copy()
            self._copy()
            for rank, rest in self._rest.items():
                if rest:
                    self._write(rank, rest)
            self._flush()
        finally:
            for file in self._open.values():
                file.close()

    def _copy(self) -> None:
        for rank, path in self._files.items():
            file = self._open.get(rank)
            if file is None:
                if not os.path.exists(path):
                    continue
                file = self._open[rank] = open(path, "rb")  # noqa: SIM115
            while new := file.read(_CHUNK):
                *lines, self._rest[rank] = (self._rest[rank] + new).split(b"\n")
                for line in lines:
                    self._write(rank, line)
        self._flush()

    def _write(self, rank: int, line: bytes) -> None:
        text = line.decode(errors="replace")
        if self._filter is None or any(part in text for part in self._filter):
            try:
                self._to.write(f"{self._prefixes[rank]}{text}\n")
            except (OSError, ValueError):
                pass  # the console is closed

    def _flush(self) -> None:
        try:
            self._to.flush()
        except (OSError, ValueError):
            pass


__all__ = ["TailLog"]
