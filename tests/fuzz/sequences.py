"""python -m fuzz --sequences N: makes sequences of calls (sequence.py) in processes of their own.

A finding is shown with the command that makes the sequence again, step by step.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Iterator, Optional

from .process import surroundings

NUMBER = struct.Struct("<q")
CHUNK = 100
HANG = 120.0  # seconds after which a sequence hangs


def child(seed: int, first: int, count: int, journal: str, steps: bool) -> int:
    """Makes sequences and prints what is wrong; the journal always says which is being made."""
    from treadle_testing import limits

    from .sequence import STEPS, sequence

    with open(journal, "r+b") as file:
        memory = mmap.mmap(file.fileno(), NUMBER.size)
    limits.apply()
    for number in range(first, first + count):
        NUMBER.pack_into(memory, 0, number)
        made = sequence(seed, number)
        show = (lambda text: print("   ", text, flush=True)) if steps else (lambda text: None)
        if (found := made.run(STEPS, show)) is not None:
            what = {"number": number, "kind": found.kind, "detail": found.detail}
            print(json.dumps({**what, "steps": made.log}), flush=True)
    NUMBER.pack_into(memory, 0, -1)
    return 0


class Sequences:
    """A run of many sequences."""

    def __init__(self, seed: int, first: int, count: int, workers: int, seconds: Optional[float]):
        self.seed, self.done, self.found = seed, 0, 0
        self.workers, self.lock = workers, threading.Lock()
        self.end = time.monotonic() + seconds if seconds else float("inf")
        self.chunks = self._hand_out(first, count)
        self.shown = count == 1  # step by step

    def _hand_out(self, first: int, count: int) -> Iterator[tuple[int, int]]:
        for start in range(first, first + count, CHUNK):
            if time.monotonic() > self.end:
                return
            yield start, min(CHUNK, first + count - start)

    def run(self) -> None:
        threads = [threading.Thread(target=self._work) for _ in range(self.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        while True:
            with self.lock:
                chunk = next(self.chunks, None)
            if chunk is None:
                return
            first, end = chunk[0], chunk[0] + chunk[1]
            while first < end:
                first = self._make(first, end - first)

    def _make(self, first: int, count: int) -> int:
        """The number of the sequence to go on with."""
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            journal = Path(folder, "journal")
            journal.write_bytes(NUMBER.pack(first))
            order = json.dumps([self.seed, first, count, str(journal), self.shown])
            try:
                process = subprocess.run(
                    [sys.executable, "-m", "fuzz.sequences", order],
                    capture_output=True, text=True, errors="replace", env=surroundings(),
                    timeout=HANG * count if count < 3 else HANG * 3 + count,
                )  # fmt: skip
                status, output, errors = process.returncode, process.stdout, process.stderr
            except subprocess.TimeoutExpired as late:
                status, errors = None, "hangs"
                output = (late.stdout or b"").decode(errors="replace")
            number = NUMBER.unpack(journal.read_bytes())[0]
        for line in output.splitlines():
            if not line.startswith("{"):
                print(line)
                continue
            found = json.loads(line)
            self._show(found["number"], f"{found['kind']}: {found['detail']}", found["steps"])
        if status == 0:
            self._count(count)
            return first + count
        how = "hangs" if status is None else f"ends with status {status}"
        if status is not None and status < 0:
            how = f"dies of {signal.Signals(-status).name}"
        if number < 0:
            raise RuntimeError(f"a process {how} outside of a sequence:\n{errors[-2000:]}")
        self._show(number, how, errors.splitlines()[-40:])
        self._count(number + 1 - first)
        return number + 1

    def _count(self, made: int) -> None:
        with self.lock:
            self.done += made

    def _show(self, number: int, what: str, lines: list[str]) -> None:
        with self.lock:
            self.found += 1
            print(f"sequence {number}: {what}")
            for line in lines:
                print("   ", line)
            again = f"./dev fuzz --sequences 1 --seed {self.seed} --first {number}"
            print(f"    again, step by step: {again}", flush=True)


def main(args: argparse.Namespace) -> int:
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(2**31)
    print(f"seed {seed}", flush=True)
    run = Sequences(
        seed, args.first, args.sequences, args.workers or os.cpu_count() or 1,
        args.minutes * 60 if args.minutes else None,
    )  # fmt: skip
    run.run()
    print(f"{run.done} sequences, {run.found} findings")
    return 1 if run.found else 0


if __name__ == "__main__":
    sys.exit(child(*json.loads(sys.argv[1])))
