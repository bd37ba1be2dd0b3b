"""The process in which a kernel runs; what kills it is a finding, not the end of the check.

    python -m treadle_testing.kernels.worker DESCRIPTOR

Orders come through the socket of that descriptor, and answers go back through it. The process that
is started imports everything, and then forks the one that runs the kernel; where that dies, it says
so and forks another.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
import itertools
import os
import signal
import sys
import warnings
from multiprocessing.connection import Connection
from typing import Any, Iterator, Optional

from . import checks, entry, kernel, plan, speed
from .judge import Finding, Judge, Skipped
from .line import Line, parse

_PR_SET_PDEATHSIG = 1
NOTE = "note"


class Session:
    """One kernel, once it is opened."""

    def __init__(self, parent: Connection):
        self.parent = parent
        self.judge: Optional[Judge] = None
        # The number of the plan's next line, and the lines from that on.
        self.planned: Optional[tuple[int, Iterator[Line]]] = None

    def open(self, operator: str, spec: str, limit: float) -> str:
        """Loads the operator and its kernel; gives the kernel's name."""
        op = entry.find(operator)
        self.planned = None
        self.judge = Judge(op, kernel.load(spec, op), limit, self.note)
        return self.judge.kernel.name

    def note(self, call: str) -> None:
        """Says what is done next: what comes after this may be the end of the process."""
        self.parent.send((NOTE, call))

    def lines(self, dtypes: list[str], given: list[str], first: int, count: int) -> list[str]:
        """The lines of the plan from number `first` on; fewer than `count` at its end."""
        assert self.judge is not None
        if self.planned is None or self.planned[0] != first:
            samples = [parse(g) for g in given]
            made = plan.lines(self.judge.op, self.judge.kernel, dtypes, samples)
            self.planned = (first, itertools.islice(made, first, None))
        some = [str(line) for line in itertools.islice(self.planned[1], count)]
        self.planned = (first + len(some), self.planned[1])
        return some

    def check(self, text: str) -> Optional[list[Finding]]:
        """The problems of a line; None where the operator refuses the call."""
        assert self.judge is not None
        try:
            return list(checks.findings(self.judge, parse(text)))
        except (Skipped, MemoryError):
            return None

    def speed(self) -> Any:
        """The figures of speed."""
        assert self.judge is not None
        if self.judge.op.kind == "view":
            return None  # nothing is computed
        lines = plan.lines(self.judge.op, self.judge.kernel)
        return speed.figures(self.judge, list(itertools.islice(lines, 20)))


def serve(parent: Connection) -> None:
    """Follows orders until there are no more."""
    session = Session(parent)
    while True:
        try:
            name, *arguments = parent.recv()
        except EOFError:
            return
        try:
            parent.send((True, getattr(session, name)(*arguments)))
        except ValueError as error:
            parent.send((False, str(error)))
        except Exception as error:
            parent.send((False, f"check-kernel: {type(error).__name__}: {error}"))


def main() -> None:
    parent = Connection(int(sys.argv[1]))
    warnings.simplefilter("ignore")
    while True:
        child = os.fork()
        if not child:
            # A kernel's process does not outlive this one.
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            serve(parent)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        status = os.waitstatus_to_exitcode(status)
        if status == 0:
            return
        try:
            parent.send((None, status))
        except OSError:
            return


if __name__ == "__main__":
    main()
