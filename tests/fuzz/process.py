"""A worker seen from outside: orders, answers, and how it ended when it did."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Optional, Sequence

from .worker import JOURNAL

# Seconds of work after which a call is taken to hang, of waiting for one that does no work, and of
# work between calls, where a process that starts imports the references.
HANG, STUCK, START = 10.0, 120.0, 60.0
TICK = os.sysconf("SC_CLK_TCK")


def surroundings() -> dict[str, str]:
    """The environment in which calls are made."""
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if os.environ.get("TREADLE_SANITIZERS"):
        # They reserve more addresses than any limit: large allocations fail by this one.
        variables["ASAN_OPTIONS"] = (
            variables.get("ASAN_OPTIONS", "") + ":max_allocation_size_mb=512"
        )
    return variables


class Died(Exception):
    """The worker ended, or was ended because it hung, in the middle of a call."""

    def __init__(self, number: int, phase: int, how: str, output: str):
        super().__init__(how)
        self.number, self.phase, self.how, self.output = number, phase, how, output


class Worker:
    """A process that makes calls; started anew by `order` after it died."""

    def __init__(self, modules: Sequence[str] = (), hang: float = HANG):
        self.modules, self.hang = list(modules), hang
        if os.environ.get("TREADLE_SANITIZERS"):
            self.hang *= 6
        self.process: Optional[subprocess.Popen[bytes]] = None
        self.pipe: Connection

    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="fuzz-")
        journal = Path(self.folder.name, "journal")
        journal.write_bytes(JOURNAL.pack(-1, 0))
        self.errors = Path(self.folder.name, "errors")
        self.pipe, theirs = Pipe()
        with theirs, open(journal, "r+b") as file, open(self.errors, "wb") as errors:
            self.journal = mmap.mmap(file.fileno(), JOURNAL.size)
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "fuzz.worker",
                    str(theirs.fileno()),
                    str(journal),
                    *self.modules,
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=surroundings(),
            )

    def order(self, *what: Any) -> None:
        """Gives an order to the process, which it starts where there is none."""
        if self.process is None:
            self.start()
        self.pipe.send(what)

    def answer(self) -> Any:
        """The next answer; Died where there is none."""
        last, since, worked = None, time.monotonic(), self._work()
        while not self.pipe.poll(0.2):
            now = number, phase = JOURNAL.unpack_from(self.journal)
            if now != last:
                last, since, worked = now, time.monotonic(), self._work()
                continue
            # Arguments are made in phase 0, which may import modules: that is no hang.
            limit = self.hang if number >= 0 and phase > 0 else max(self.hang, START)
            if self._work() - worked > limit or time.monotonic() - since > STUCK:
                self._end(f"hangs: no end after {limit:.0f} s")
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self._end("")

    def _work(self) -> float:
        """Seconds of processor time that the process has used."""
        assert self.process is not None
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / TICK

    def _end(self, how: str) -> None:
        """Takes leave of the process; raises Died."""
        assert self.process is not None
        number, phase = JOURNAL.unpack_from(self.journal)
        if how:
            self.process.kill()
        status = self.process.wait()
        if not how:
            how = f"exits with status {status}"
            if status < 0:
                how = f"dies of {signal.Signals(-status).name}"
        output = self.errors.read_text(errors="replace")[-4000:]
        self.close()
        raise Died(number, phase, how, output)

    def close(self) -> None:
        if self.process is not None:
            self.pipe.close()
            self.process.kill()
            self.process.wait()
            self.process = None
            self.journal.close()
            self.folder.cleanup()
