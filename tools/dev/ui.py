"""How ./dev talks: a line for each step with the time it took, errors that say what to do.

Example:

    with step("Python packages"):
        run_quietly(["pip", "install", ...])
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TERMINAL = sys.stdout.isatty()


class DevError(Exception):
    """A failure that is reported as one message and an exit status, not as a traceback."""

    def __init__(self, message: str, status: int = 1):
        super().__init__(message)
        self.status = status


def say(text: str) -> None:
    """One line of our own, told apart from the output of the tools."""
    print(f"[dev] {text}", flush=True)


@contextlib.contextmanager
def step(title: str) -> Iterator[None]:
    """Announces a step and says how long it took."""
    say(f"{title} ...")
    start = time.monotonic()
    yield
    say(f"{title}: done in {time.monotonic() - start:.1f} s")


def run(command: Sequence[str], env: dict[str, str] | None = None, cwd: Path = ROOT) -> int:
    """Runs a command whose output the user sees; returns its exit status."""
    try:
        return subprocess.run(list(command), env=merged(env), cwd=cwd).returncode
    except FileNotFoundError:
        raise DevError(f"{command[0]} was not found; ./dev build installs it") from None


def run_quietly(command: Sequence[str], what: str, env: dict[str, str] | None = None) -> None:
    """Runs a command showing only its latest line; all of its output comes out when it fails."""
    width = shutil.get_terminal_size().columns - 4
    lines: list[str] = []
    with subprocess.Popen(
        list(command),
        env=merged(env),
        cwd=ROOT,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL if not TERMINAL else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if TERMINAL:
                print(f"\r\033[K  {line.strip()[:width]}", end="", flush=True)
    if TERMINAL:
        print("\r\033[K", end="", flush=True)
    if process.returncode:
        raise DevError(f"{what} failed:\n{''.join(lines[-40:])}\ncommand: {' '.join(command)}")


def merged(env: dict[str, str] | None) -> dict[str, str]:
    """Our environment with some variables changed."""
    return {**os.environ, **(env or {})}
