"""Progress of a Bazel build: its counts of actions become one line with the time that is left.

[dev] 184 of 409 steps (45 %), about 6 minutes left: Compiling aten/ops/sorting/cpu/sort.cc
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence

from ui import ROOT, TERMINAL, DevError, merged, say

# "[1,184 / 2,409] Compiling x.cc; 3s linux-sandbox ... (2 actions running)", perhaps in colors.
COUNTS = re.compile(r"\[([\d,]+) / ([\d,]+)\] ?([^;]*)")
COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# Steps differ in length, and results from a cache take no time: the pace is that of this window.
WINDOW_SECONDS = 60
# Where there is no terminal, a line at most so often.
QUIET_SECONDS = 20


class Progress:
    """Reads Bazel's lines: `read()` returns the text to show, or None for another kind."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.seen: deque[tuple[float, int]] = deque()

    def read(self, line: str) -> str | None:
        match = COUNTS.search(COLORS.sub("", line))
        if match is None:
            return None
        done, total = (int(number.replace(",", "")) for number in match.groups()[:2])
        now = self.clock()
        if self.seen and done < self.seen[-1][1]:
            self.seen.clear()
        self.seen.append((now, done))
        while now - self.seen[0][0] > WINDOW_SECONDS:
            self.seen.popleft()
        share = f"{done} of {total} steps ({100 * done // max(total, 1)} %)"
        doing = match[3].strip()
        return f"{share}{self.left(total)}" + (f": {doing}" if doing else "")

    def left(self, total: int) -> str:
        """The time that is left at the pace of the window, once it is long enough to tell."""
        (start, first), (now, done) = self.seen[0], self.seen[-1]
        if now - start < WINDOW_SECONDS / 4 or done == first:
            return ""
        seconds = (total - done) * (now - start) / (done - first)
        if seconds < 90:
            return ", about a minute left"
        return f", about {round(seconds / 60)} minutes left"


def run_bazel(arguments: Sequence[str]) -> int:
    """Runs Bazel, shows its progress as above and all of its other lines; returns its status."""
    color = "yes" if TERMINAL else "no"
    options = ["--curses=no", f"--color={color}", "--show_progress_rate_limit=1"]
    command, *rest = arguments
    try:
        process = subprocess.Popen(
            ["bazel", command, *options, *rest],
            cwd=ROOT,
            env=merged(None),
            text=True,
            errors="replace",
            stderr=subprocess.PIPE,
        )
    except FileNotFoundError:
        raise DevError("bazel was not found; ./dev build installs it") from None
    progress, shown = Progress(), 0.0
    with process:
        assert process.stderr is not None
        for line in process.stderr:
            text = progress.read(line)
            if text is None:
                clear()
                print(line, end="", file=sys.stderr, flush=True)
            elif TERMINAL:
                width = shutil.get_terminal_size().columns - 1
                print("\r\033[K" + f"[dev] {text}"[:width], end="", flush=True)
            elif time.monotonic() - shown >= QUIET_SECONDS:
                shown = time.monotonic()
                say(text)
    clear()
    return process.returncode


def clear() -> None:
    """Takes the line of progress away."""
    if TERMINAL:
        print("\r\033[K", end="", flush=True)
