"""Every operator with a kernel of its own on the CPU, beside PyTorch's function of the same name:
the section of throughput.py that shows the slowest.

The model has the operators and the tests have the samples (_samples.py); no list of either is kept
here. Each library runs in a process of its own, on the same values; the two take turns.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import importlib.util
import multiprocessing
import resource
import statistics
import sys
import time
import warnings
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Optional, Sequence, Union

import _samples
from _samples import Plan

from treadle_testing.cases import has_samples
from treadle_testing.catalogue import Operator, by_id, operators

SIZES = (1000, 100_000, 1_000_000)
LEAST_SECONDS, SLOW_SECONDS, WAIT_SECONDS = 0.005, 0.3, 60.0
SPIN_SECONDS = 0.01  # for so long OpenMP's idle threads, those of the other library too, may spin
SPARE_BYTES = 8 << 30
FRONTS = 12  # how many calls that reach a kernel are tried

WORK = "work"  # the order to tell what a call reaches at the peak
Answer = Union[float, str]


def _serve(name: str, threads: int, orders: Connection) -> None:
    """Takes a plan, or the number of calls to time, and answers with the seconds of a call; takes
    WORK, and answers with the seconds that a call takes at the machine's peak. A text says what
    went wrong."""
    library = importlib.import_module(name)
    library.set_num_threads(threads)
    warnings.simplefilter("ignore")  # PyTorch's, of signatures that it deprecated
    clock = time.process_time if threads == 1 else time.perf_counter
    call: Any = None
    for order in iter(orders.recv, None):
        answer: Answer
        try:
            if isinstance(order, Plan):
                call = None
                library.manual_seed(0)
                call = _samples.made(order, library)
                call()
                order = 1
            elif order == WORK:
                orders.send(_seconds_at_peak(call))
                continue
            if threads > 1:
                _settle(call)
            start = clock()
            for _ in range(order):
                call()
            answer = (clock() - start) / order
        except Exception as error:  # whatever it is, the other operators are measured
            answer = f"{type(error).__name__}: {error}".splitlines()[0]
        orders.send(answer)


def _settle(call: Any) -> None:
    """Lets the other library's threads fall asleep, and the system place those of this one."""
    time.sleep(SPIN_SECONDS)
    end = time.perf_counter() + LEAST_SECONDS
    while time.perf_counter() < end:
        call()


def _seconds_at_peak(call: Any) -> float:
    """The seconds that Treadle's peak needs for what a call moves and computes."""
    profiler = importlib.import_module("treadle.profiler")
    counter = importlib.import_module("treadle.utils.flop_counter")
    with profiler.profile(record_shapes=True) as recording:
        call()
    with counter.FlopCounterMode(display=False) as flops:
        call()
    peak = profiler.roofline()
    moved = sum(event.bytes_moved for event in recording.events())
    return max(moved / peak.bytes_per_second, flops.get_total_flops() / peak.flops_per_second)


class _Library:
    """A process that measures with a library, begun again where it ended."""

    def __init__(self, name: str, threads: int) -> None:
        self.name, self.threads = name, threads
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.orders, others = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(self.name, self.threads, others), daemon=True
        )
        self.process.start()
        others.close()

    def ask(self, order: Union[Plan, int, str]) -> Answer:
        try:
            self.orders.send(order)
            if self.orders.poll(WAIT_SECONDS):
                return self.orders.recv()
            answer = f"took longer than {WAIT_SECONDS:.0f} s"
        except (EOFError, OSError):
            answer = "its process ended"
        self.process.kill()
        self.process.join()
        self.start()
        return answer

    def close(self) -> None:
        self.orders.send(None)
        self.process.join()


@dataclass
class Row:
    """The measurements of a plan: seconds of a call by library, or the error of one; and the share
    of the machine's peak that Treadle's call reaches, 0 if what it moves is not known."""

    plan: Plan
    kernels: Sequence[str]
    threads: int
    seconds: list[float] = field(default_factory=list)
    error: str = ""
    of_peak: float = 0.0

    @property
    def ratio(self) -> Optional[float]:
        return self.seconds[0] / self.seconds[1] if len(self.seconds) > 1 else None

    def __str__(self) -> str:
        times = "".join(f"{s * 1e6:12.1f}" for s in self.seconds) + " " * 12 * (
            2 - len(self.seconds)
        )
        ratio = f"{self.ratio:8.2f}" if self.ratio is not None else " " * 8
        line = f"{self.plan.name:50s}{self.plan.sample:4d}  {self.plan.way:18s}"
        line += f"{self.plan.elements:9d}{self.threads:8d}{times}{ratio}"
        line += f"{self.of_peak:9.2f}"
        return (line + "  " + (self.error or ", ".join(self.kernels))).rstrip()


def _measure(libraries: list[_Library], row: Row, rounds: int) -> None:
    counts: list[int] = []
    for library in libraries:
        answer = library.ask(row.plan)
        if isinstance(answer, str):
            row.error = f"{library.name}: {answer}"
            break
        counts.append(max(1, int(LEAST_SECONDS / max(answer, 1e-9))))
        rounds = min(rounds, 2) if answer > SLOW_SECONDS else rounds
    # Where PyTorch refuses the call, Treadle's time is still told.
    able = libraries[: len(counts)]
    times: list[list[float]] = [[] for _ in able]
    for _ in range(rounds):
        for library, count, own in zip(able, counts, times):
            answer = library.ask(count)
            if isinstance(answer, str):
                row.error = f"{library.name}: {answer}"
                return
            own.append(answer)
    row.seconds = [statistics.median(own) for own in times]
    at_peak = libraries[0].ask(WORK)
    if isinstance(at_peak, float) and row.seconds:
        row.of_peak = at_peak / row.seconds[0]


def _limit_memory() -> None:
    """A sample that grew too large is refused, rather than taking the machine's memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass
class _Calls:
    """Plans, each with the kernels that it stands for; and the kernels that no plan measures."""

    plans: list[tuple[Plan, Sequence[str]]] = field(default_factory=list)
    unscaled: list[str] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)


def _calls(only: str, sizes: Sequence[int], samples: int) -> _Calls:
    """Those whose names begin with `only`. Which call a kernel is measured through does not depend
    on that."""
    own = [op for op in operators() if _samples.own_kernel(op)]
    direct = [op for op in own if has_samples(op) and not op.internal]
    wanted = {op.name for op in own} - {op.name for op in direct}
    calls = _Calls()
    for op in direct:
        plans = _samples.plans(op, sizes, samples) if op.id.startswith(only) else []
        calls.plans += [(plan, ()) for plan in plans]
        if op.id.startswith(only) and (not plans or not _compared(op)):
            wanted.add(op.name)
    chosen: dict[_samples.Front, list[str]] = {}
    for kernel, fronts in sorted(_samples.fronts(wanted).items()):
        able = (front for front in fronts[:FRONTS] if _samples.plans_of(front, sizes[:1]))
        if (front := next(able, None)) is not None:
            if kernel.startswith(only) or front.operator.startswith(only):
                chosen.setdefault(front, []).append(kernel)
        elif kernel.startswith(only):
            (calls.unscaled if fronts else calls.unreached).append(kernel)
    for front, kernels in chosen.items():
        calls.plans += [(plan, kernels) for plan in _samples.plans_of(front, sizes)]
    return calls


def _compared(op: Operator) -> bool:
    """Whether PyTorch has it, as far as PyTorch is there."""
    absent = importlib.util.find_spec("torch") is None
    return absent or _samples.counterpart(op) is not None


def _print_table(title: str, rows: list[Row], most: int) -> None:
    if not rows:
        return
    print(f"\n{title}")
    header = f"{'operator':50s}{'no.':>4s}  {'larger in':18s}{'elements':>9s}{'threads':>8s}"
    header += f"{'Treadle':>12s}{'PyTorch':>12s}{'ratio':>8s}{'of peak':>9s}"
    print(f"{header}  kernels that it stands for")
    for row in rows[: most or None]:
        print(row)
    if most and len(rows) > most:
        print(f"... and {len(rows) - most} rows more")


def section(
    only: str, worst: int, threads: Sequence[int], samples: int, sizes: Sequence[int], rounds: int
) -> None:
    """Prints the table, the worst ratio first, and below it what has none."""
    compared = importlib.util.find_spec("torch") is not None
    if compared:
        importlib.import_module("torch")  # before the limit: its libraries reserve much
    _limit_memory()
    _say("choosing the calls")
    calls = _calls(only, sizes, samples)
    rows = []
    for number in threads:
        names = ["treadle", *(["torch"] if compared else [])]
        libraries = [_Library(name, number) for name in names]
        for i, (plan, kernels) in enumerate(calls.plans):
            if i % 20 == 0:
                _say(f"{i}/{len(calls.plans)} {plan.name}, threads: {number}")
            row = Row(plan, kernels, number)
            known = _samples.counterpart(by_id()[plan.operator]) is not None
            _measure(libraries if known else libraries[:1], row, rounds)
            rows.append(row)
        for library in libraries:
            library.close()

    with_ratio = [row for row in rows if row.ratio is not None]
    with_ratio.sort(key=lambda row: -(row.ratio or 0.0))
    title = "every operator with a kernel, microseconds of a call; the worst ratio first"
    _print_table(title, with_ratio, worst)
    title = "without a ratio: PyTorch lacks the operator, or one of the two refuses the call"
    title = title if compared else "without a ratio: PyTorch is not installed"
    _print_table(title, [row for row in rows if row.ratio is None], worst)
    if calls.unscaled:
        names = ", ".join(calls.unscaled)
        print("\nnot measured, since no sample that reaches them can be made larger:", names)
    if calls.unreached:
        print("\nnot measured, since no sample reaches them:", ", ".join(calls.unreached))
