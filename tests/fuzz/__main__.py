"""python -m fuzz: makes calls, and says which end other than they may.

The last line is `N calls, M operators, K findings`; the exit status is 1 if there are any.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from . import seeds, sequences, threads
from .process import HANG, Worker, surroundings
from .runner import Found, Run
from .script import source
from .shrink import MOST_SECONDS, shrink

# Findings that are made small and written down; the others are counted.
MOST_WRITTEN, MOST_SHRINKING_SECONDS = 60, 300


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(prog="fuzz", description=(__doc__ or "").splitlines()[0])
    add_arguments(out)
    return out


def add_arguments(out: argparse.ArgumentParser) -> None:
    out.add_argument("--calls", type=int, default=50_000, help="how many (default 50000)")
    out.add_argument("--seed", type=int, help="which calls; drawn and printed when not given")
    out.add_argument("--first", type=int, default=0, help="the number of the first call")
    out.add_argument("--op", metavar="NAME", help="this operator only, such as add or add.Tensor")
    out.add_argument(
        "--sequences", metavar="N", type=int,
        help="instead of calls: sequences of calls on tensors that share memory",
    )  # fmt: skip
    out.add_argument("--minutes", type=float, help="stop after so long")
    out.add_argument("--workers", type=int, help="processes (default: one for each core)")
    out.add_argument("--replay", metavar="FILE", help="run the script of a finding again")
    out.add_argument("--out", default="build/fuzz", help="where scripts go (default build/fuzz)")
    out.add_argument(
        "--with", dest="modules", metavar="MODULE", action="append", default=[],
        help="import this in every worker first: a library whose operators are to be called",
    )  # fmt: skip
    out.add_argument(
        "--shrink", type=float, default=MOST_SECONDS, help="seconds for each finding (default 20)"
    )
    out.add_argument(
        "--hang", type=float, default=HANG, help="seconds after which a call hangs (default 10)"
    )


def main() -> int:
    if "--threads" in sys.argv:
        at = sys.argv.index("--threads")
        return threads.main(sys.argv[at + 1 :] + sys.argv[1:at])
    args = parser().parse_args()
    if args.replay:
        return replay(Path(args.replay), args.hang)
    if args.sequences is not None:
        return sequences.main(args)
    if not seeds.targets(args.op):
        print(f"fuzz: expected the name of an operator, got --op {args.op}", file=sys.stderr)
        return 2
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(2**31)
    print(f"seed {seed}", flush=True)
    # Stopping a run stops the calls: what was found is still written down.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run = Run(
        seed, args.calls, args.op, args.workers or os.cpu_count() or 1,
        args.minutes * 60 if args.minutes else None, args.modules, args.hang, args.first,
    )  # fmt: skip
    bar = Bar()
    run.report = bar.report
    try:
        run.run(bar.show)
    except KeyboardInterrupt:
        print("stopped")
    bar.end()
    write_down(run, args, seed)
    print(f"{run.done} calls, {run.operators()} operators, {len(run.found)} findings")
    return 1 if run.found else 0


class Bar:
    """A line with how far a run is, drawn over itself on a terminal."""

    def __init__(self) -> None:
        self.started, self.last = time.monotonic(), 0.0
        self.terminal = sys.stdout.isatty()

    def show(self, run: Run) -> None:
        now = time.monotonic()
        if now - self.last < (0.5 if self.terminal else 30.0):
            return
        self.last = now
        share = run.done / max(run.calls, 1)
        filled = int(share * 30)
        rate = run.done / (now - self.started)
        text = (
            f"[{'#' * filled}{'.' * (30 - filled)}] {run.done}/{run.calls} calls, "
            f"{rate:.0f} a second, {len(run.found)} findings"
        )
        print(f"\r\033[K{text}" if self.terminal else text, end="" if self.terminal else "\n")
        sys.stdout.flush()

    def report(self, found: Found) -> None:
        """A finding as soon as it is there: the run may be long."""
        self.end()
        print("  " + _short(f"call {found.number}: {described(found)}"), flush=True)

    def end(self) -> None:
        if self.terminal:
            print("\r\033[K", end="", flush=True)


def write_down(run: Run, args: argparse.Namespace, seed: int) -> None:
    """Shrinks each finding and writes its script."""
    folder = Path(args.out)
    worker = Worker(args.modules, args.hang)
    end = time.monotonic() + MOST_SHRINKING_SECONDS

    # The worst first.
    def rank(f: Found) -> tuple[bool, int]:
        return f.finding.kind not in ("crash", "hang"), f.number

    found = sorted(run.found.values(), key=rank)
    for n, item in enumerate(found):
        times = f" ({item.count} times)" if item.count > 1 else ""
        line = f"{item.recipe.op}, {item.finding.kind}{times}"
        if n >= MOST_WRITTEN or time.monotonic() > end:
            print("  " + _short(line))
            continue
        recipe, finding = shrink(worker, item.recipe, item.finding.kind, args.shrink)
        if finding is None and item.finding.kind == "leak":
            # Memory that grew beside many other calls and not in a process of its own is a cache.
            print("  " + _short(f"{line}: not when it is called alone"), flush=True)
            run.found = {k: f for k, f in run.found.items() if f is not item}
            continue
        only = f" with --op {args.op}" if args.op else ""
        origin = f"Call {item.number} of seed {seed}{only}."
        text = source(recipe, finding or item.finding, origin, args.modules, finding is not None)
        folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"\W+", "-", f"{n:03}-{recipe.op}-{item.finding.kind}").strip("-").lower()
        path = folder / f"{name}.py"
        path.write_text(text)
        print("  " + _short(f"{path}: {line}"), flush=True)
    worker.close()


def described(found: Found) -> str:
    return f"{found.recipe.op}, {found.recipe.form}: {found.finding}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return (text if len(text) <= 240 else text[:240] + "...").encode("ascii", "replace").decode()


def replay(path: Path, hang: float) -> int:
    """Runs a script as workers run calls; 0 if it ends well."""
    command = [sys.executable, "-m", "fuzz.replay", str(path)]
    try:
        done = subprocess.run(command, timeout=3 * hang, env=surroundings())
    except subprocess.TimeoutExpired:
        print(f"{path}: hangs: no end after {3 * hang:.0f} s")
        return 1
    print(f"{path}: " + ("ends well" if not done.returncode else f"ends with {done.returncode}"))
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
