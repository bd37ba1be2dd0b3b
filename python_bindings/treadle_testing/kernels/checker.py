"""Checks a kernel in a process of its own, and says what is wrong with it.

Example:

    report = check("relu", "kernels.py:relu", seconds=20)
    print(report.text())
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Iterator, Optional, Sequence

from .judge import ULPS, Finding
from .worker import NOTE

# Seconds of work after which a line is taken to hang, and how many times as long it may wait; a
# kernel's library may take longer to compile.
HANG, _WAIT, OPEN = 20.0, 6, 600.0
# Of each kind, so many findings are kept, and so many crashes of the process are waited for.
OF_A_KIND, MOST_CRASHES = 3, 8
# Lines that are asked for together.
_AT_ONCE = 20


class Died(Exception):
    """The process ended in the middle of an order."""


class _Process:
    """A process that runs kernels; the kernel that was opened is lost where one has `died`."""

    def __init__(self) -> None:
        self.died, self.noted = False, ""
        self.pipe: Connection
        self.pipe, theirs = Pipe()
        variables = {**os.environ, "OMP_WAIT_POLICY": "passive"}
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "treadle_testing.kernels.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=variables,
            )

    def ask(self, name: str, *arguments: Any, seconds: float = HANG) -> Any:
        """The answer to an order. Died where there is none; ValueError for one that fails."""
        try:
            self.pipe.send((name, *arguments))
            self.noted, good, answer = "", NOTE, ""
            while good == NOTE:
                self.noted = answer
                begin, worked = time.monotonic(), self._work()
                while not self.pipe.poll(1.0):
                    waited = time.monotonic() - begin
                    if self._work() - worked > seconds or waited > _WAIT * seconds:
                        raise Died(f"no end after {waited:.0f} s")
                good, answer = self.pipe.recv()
        except (EOFError, OSError):
            raise Died(f"exit status {self.process.wait()}") from None
        if good is None:  # `answer` is the status of the process that ran the kernel
            self.died = True
            raise Died(signal.Signals(-answer).name if answer < 0 else f"exit status {answer}")
        if not good:
            raise ValueError(answer)
        return answer

    def _work(self) -> float:
        """Seconds of processor time of the process that runs the kernel: on a busy machine, these
        say more than a clock."""
        try:
            tasks = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
            child = tasks.read_text().split()[0]
            fields = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()


@dataclass
class Report:
    """The findings of a check in so many `lines`, of which the operator refused some; `complete`
    says whether these are all that were planned."""

    operator: str
    kernel: str
    findings: list[Finding] = field(default_factory=list)
    lines: int = 0
    refused: int = 0
    complete: bool = True
    seconds: float = 0.0
    speed: Optional[dict[str, Any]] = None
    more: dict[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """One line for each problem, then a summary."""
        shown = [str(f) for f in self.findings]
        shown += [f"{kind}: {n} more" for kind, n in sorted(self.more.items()) if n]
        if self.speed is not None:
            s = self.speed
            rate = s["bytes_per_second"] / s["peak_bytes_per_second"]
            beside = (
                f", the operator {s['operator_seconds'] * 1e3:.3g} ms"
                if s["operator_seconds"]
                else ""
            )
            shown.append(
                f"speed: {s['line']}    {s['seconds'] * 1e3:.3g} ms{beside}, {rate:.0%} of the "
                "machine's bandwidth"
            )
        count = sum(self.more.values()) + len(self.findings)
        more = "" if self.complete else " (there was no time for more)"
        shown.append(
            f"{self.operator}: {self.lines} lines{more}, {count} findings, {self.seconds:.0f} s"
        )
        return "\n".join(shown)

    def json(self) -> str:
        return json.dumps({**asdict(self), "findings": [asdict(f) for f in self.findings]})


class Checker:
    """Checks kernels one after the other; a context, whose process ends with it."""

    def __init__(self, limit: float = ULPS) -> None:
        self.limit = limit
        self.process: Optional[_Process] = None
        self.opened: tuple[str, str] = ("", "")

    def __enter__(self) -> "Checker":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def close(self) -> None:
        if self.process is not None:
            self.process.close()
            self.process = None

    def open(self, operator: str, kernel: str) -> str:
        """Loads an operator and a kernel into the process. ValueError where one is not there, and
        where loading ends the process."""
        if self.process is None:
            self.process = _Process()
        self.opened = (operator, kernel)
        self.process.died = False
        try:
            return self.process.ask("open", operator, kernel, self.limit, seconds=OPEN)
        except Died as end:
            self.close()
            raise ValueError(f"check-kernel: expected {kernel} to be loaded, got {end}") from None

    def _opened(self) -> _Process:
        if self.process is None or self.process.died:
            self.open(*self.opened)
        assert self.process is not None
        return self.process

    def _after(self) -> None:
        if self.process is not None and not self.process.died:
            self.close()

    def line(self, text: str) -> Optional[list[Finding]]:
        """The problems of one line, a crash or a hang among them; None where the operator refuses
        the call."""
        try:
            return self._opened().ask("check", text)
        except Died as end:
            kind = "hang" if str(end).startswith("no end") else "crash"
            assert self.process is not None
            where = f", in a call {self.process.noted}" if self.process.noted else ""
            self._after()
            return [Finding(kind, text, f"{end}{where}")]

    def check(
        self,
        operator: str,
        kernel: str = "",
        *,
        seconds: float = 50.0,
        lines: Sequence[str] = (),
        only: bool = False,
        dtypes: Sequence[str] = (),
        first: bool = False,
        speed: bool = True,
        most: Optional[int] = None,
    ) -> Report:
        """Checks a kernel of an operator for so many seconds, with `most` lines at most.

        `lines` are calls that take the place of the samples; with `only` no variations of them are
        made. `first` ends at the first finding. ValueError for an operator or a kernel that is not
        there, and where there is no call that the operator takes.
        """
        start = time.monotonic()
        report = Report(operator, self.open(operator, kernel))
        kinds: dict[str, list[Finding]] = {}
        end = None if only else time.monotonic() + seconds
        for finding in self.findings(report, lines, only, dtypes, end, most):
            kinds.setdefault(finding.kind, []).append(finding)
            if first:
                break
        if report.lines == report.refused:
            got = f"{report.lines} that it refuses" if report.lines else "no samples of its tests"
            raise ValueError(
                f"check-kernel: expected calls that {operator} takes, got {got}; "
                "--sample gives some"
            )
        for kind, of_kind in kinds.items():
            of_kind.sort(key=lambda f: len(f.line))
            report.findings += of_kind[:OF_A_KIND]
            report.more[kind] = len(of_kind[OF_A_KIND:])
        if speed and not only:
            report.speed = self._speed()
        report.seconds = time.monotonic() - start
        return report

    def findings(
        self,
        report: Report,
        lines: Sequence[str] = (),
        only: bool = False,
        dtypes: Sequence[str] = (),
        end: Optional[float] = None,
        most: Optional[int] = None,
    ) -> Iterator[Finding]:
        """The problems of the kernel that is open, as they are found, until the time `end`; counts
        lines in `report`."""
        crashes = 0
        for text in lines if only else self._planned(list(dtypes), list(lines)):
            late = end is not None and report.lines > 0 and time.monotonic() > end
            if crashes >= MOST_CRASHES or late or report.lines == most:
                report.complete = False
                return
            report.lines += 1
            found = self.line(text)
            report.refused += found is None
            crashes += any(f.kind in ("crash", "hang") for f in found or ())
            yield from found or ()

    def _planned(self, dtypes: list[str], given: list[str]) -> Iterator[str]:
        count = 0
        while True:
            some = self._opened().ask("lines", dtypes, given, count, _AT_ONCE, seconds=OPEN)
            yield from some
            count += len(some)
            if len(some) < _AT_ONCE:
                return

    def _speed(self) -> Optional[dict[str, Any]]:
        try:
            return self._opened().ask("speed", seconds=60.0)
        except (Died, ValueError):
            self.close()
            return None


def check(operator: str, kernel: str = "", **options: Any) -> Report:
    """Checks a kernel of an operator (`Checker.check`)."""
    with Checker() as checker:
        return checker.check(operator, kernel, **options)


__all__ = ["Checker", "Finding", "Report", "check"]
