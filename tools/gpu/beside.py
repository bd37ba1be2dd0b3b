"""Two libraries beside each other: each in a process of its own, taking turns in every case of
benchmarks/gpu, so that what else the machine does meets both alike.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Optional

from setting import ROOT, Setting

FOLDER = ROOT / "benchmarks" / "gpu"
sys.path.insert(0, str(FOLDER))
sys.dont_write_bytecode = True

from cases import KERNELS, QUEUED, Case  # noqa: E402
from models import MODELS  # noqa: E402

ROUNDS, CASE_SECONDS = 3, 60


class Library:
    """A library's worker; `answer` is None once it ended, or was too slow."""

    def __init__(self, place: Setting, command: list[str], own: bool) -> None:
        # PyTorch's process does not see Treadle's package.
        variables = place.environment if own else {}
        self.log = (place.output / "gpu.log").open("a")
        self.process = subprocess.Popen(
            [*command, str(FOLDER / "worker.py")], env={**os.environ, **variables}, cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
        )  # fmt: skip
        hello = self._read(CASE_SECONDS)
        self.title = f"{hello['library']} {hello['version']}" if hello else ""

    def _read(self, seconds: float) -> Optional[dict[str, Any]]:
        assert self.process.stdout is not None
        timer = threading.Timer(seconds, self.process.kill)
        timer.start()
        try:
            line = self.process.stdout.readline()
            # A program may print, too; an answer is an object.
            while line and not line.startswith("{"):
                line = self.process.stdout.readline()
        finally:
            timer.cancel()
        return json.loads(line) if line else None

    def ask(self, order: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The answer to an order."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": "its process had ended"}
        return self._read(seconds) or {"error": "its process ended, or was too slow"}

    def close(self) -> None:
        if self.process.stdin is not None:
            # An order that a process that ended did not read is written once more here.
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Pair:
    """Treadle, and PyTorch where it is installed; a worker that ended is begun again."""

    def __init__(self, place: Setting) -> None:
        self.place = place
        self.commands = [place.treadle, [sys.executable]]
        self.open: list[Optional[Library]] = [None, None]
        self.titles = [self._library(0).title, self._library(1).title]

    def _library(self, i: int) -> Library:
        library = self.open[i]
        if library is None or library.process.poll() is not None:
            library = self.open[i] = Library(self.place, self.commands[i], own=i == 0)
        return library

    def measure(self, name: str, end: float) -> list[dict[str, Any]]:
        """The medians of both; {"error": ...} where one could not."""
        found: list[list[dict[str, Any]]] = [[], []]
        order = {"case": name, "device": self.place.device, "quick": self.place.quick}
        order["seconds"] = 0.02 if self.place.quick else 0.3 if name in MODELS else 0.05
        for _ in range(ROUNDS):
            for i in range(2):
                if self.titles[i] and not any("error" in answer for answer in found[i]):
                    limit = max(5.0, min(CASE_SECONDS, end - time.monotonic()))
                    found[i].append(self._library(i).ask(order, limit))
        return [_median(answers) for answers in found]

    def close(self) -> None:
        for library in self.open:
            if library is not None:
                library.close()


def _median(answers: list[dict[str, Any]]) -> dict[str, Any]:
    if not answers:
        return {"error": "not installed"}
    for answer in answers:
        if "error" in answer:
            return answer
    seconds = statistics.median(answer["seconds"] for answer in answers)
    return {**answers[-1], "seconds": seconds}


Row = Callable[[str, Case, list[dict[str, Any]]], list[str]]


def _measured(
    place: Setting, cases: dict[str, Case], seconds: float, header: list[str], row: Row
) -> str:
    """A table of the cases that time allowed, then what went wrong and what was left."""
    end = time.monotonic() + seconds
    pair = Pair(place)
    table, notes, left = [], [], []
    for name, case in cases.items():
        if time.monotonic() > end - 5:
            left.append(name)
            continue
        answers = pair.measure(name, end)
        for title, present, answer in zip(("Treadle", "PyTorch"), pair.titles, answers):
            if present and "error" in answer:
                notes.append(f"* {title}, {name}: {answer['error']}")
        table.append([name, *row(name, case, answers)])
    pair.close()
    if not all(pair.titles):
        notes.append("* PyTorch is not installed, or does not start")
    if left:
        notes.append(f"* no time was left for {', '.join(left)}")
    titles = [title for title in pair.titles if title]
    lines = [" and ".join(titles) + f"; medians of {ROUNDS} turns.", ""]
    lines += ["| " + " | ".join(cells) + " |" for cells in [header, ["---"] * len(header), *table]]
    return "\n".join(lines + ["", *notes] if notes else lines)


def _rate(case: Case, answer: dict[str, Any], quick: bool) -> Optional[float]:
    return case.amount(quick) / answer["seconds"] if "seconds" in answer else None


def _ratio(a: Optional[float], b: Optional[float]) -> str:
    return f"{a / b:.2f}" if a and b else ""


def kernels(place: Setting, seconds: float) -> str:
    """GB/s, also as a part of the copy's; TFLOP/s; microseconds of the host for a queued call."""
    copied: list[float] = []

    def row(name: str, case: Case, answers: list[dict[str, Any]]) -> list[str]:
        rates = [_rate(case, answer, place.quick) for answer in answers]
        if name == "copy":
            copied.extend(rate for rate in rates if rate)
        if case.unit == "calls queued":
            times = [answer.get("seconds") for answer in answers]
            cells = ["" if t is None else f"{t / QUEUED * 1e6:.2f} us" for t in times]
            return [*cells, _ratio(rates[0], rates[1]), ""]
        scale, unit = (1e-9, "GB/s") if case.unit == "bytes" else (1e-12, "TFLOP/s")
        cells = ["" if rate is None else f"{rate * scale:.1f} {unit}" for rate in rates]
        part = _ratio(rates[0], max(copied)) if case.unit == "bytes" and copied else ""
        return [*cells, _ratio(rates[0], rates[1]), part]

    header = ["", "Treadle", "PyTorch", "ratio", "of the copy"]
    return _measured(place, KERNELS, seconds, header, row)


def models(place: Setting, seconds: float) -> str:
    """Samples per second, and the most memory that tensors took."""

    def row(name: str, case: Case, answers: list[dict[str, Any]]) -> list[str]:
        rates = [_rate(case, answer, place.quick) for answer in answers]
        bytes_of = [answer.get("memory") for answer in answers]
        cells = ["" if rate is None else f"{rate:.0f}" for rate in rates]
        memory = ["" if not used else f"{used / 1e6:.0f} MB" for used in bytes_of]
        return [*cells, _ratio(rates[0], rates[1]), *memory, _ratio(bytes_of[0], bytes_of[1])]

    header = ["samples per second", "Treadle", "PyTorch", "ratio"]
    header += ["memory of Treadle", "of PyTorch", "ratio"]
    return _measured(place, MODELS, seconds, header, row)
