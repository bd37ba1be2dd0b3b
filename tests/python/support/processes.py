"""The tests' questions about processes: which ones this started, whether one still runs, and where
those hang that do not end."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import faulthandler
import gc
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Iterable, Iterator

_SIGNAL = signal.SIGUSR1  # asks a process for its stacks
_SECONDS = 20  # for the stacks of one process outside of Python
_MOST = 6  # processes


def children() -> list[int]:
    """Processes that this one started and that still run, but for those that `multiprocessing`
    keeps for itself."""
    gc.collect()  # what a traceback held
    return [pid for pid in _children_of(os.getpid()) if not _is_helper(pid)]


def descendants() -> list[int]:
    """The same processes, what the helpers of `multiprocessing` started, and what all of them
    started."""
    found: list[int] = []
    first = _children_of(os.getpid())
    waiting = list(first)
    while waiting:
        pid = waiting.pop(0)
        waiting += _children_of(pid)
        if pid not in first or not _is_helper(pid):
            found.append(pid)
    return found


def _children_of(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    return ""


def _is_helper(pid: int) -> bool:
    line = _command(pid)
    return not line or "resource_tracker" in line or "multiprocessing.forkserver" in line


def is_running(pid: int) -> bool:
    """Whether the process is there, and not as one that only waits to be asked how it ended."""
    return _field(pid, "State") not in ("", "Z (zombie)")


def _field(pid: int, name: str) -> str:
    """A field of the process's status; "" where it is not there."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return line.partition(":")[2].strip()
    return ""


# ---- Where they hang ----

_stacks: Any = None  # the file


def tell_stacks(path: str = "") -> str:
    """From now on this process, and each child that it forks, writes its stacks into a file when
    it is asked for them. Returns the path of the file, by default a new one."""
    global _stacks
    if path:
        _stacks = open(path, "a")  # noqa: SIM115  as long as the process
    else:
        _stacks = tempfile.NamedTemporaryFile("a", prefix="treadle-stacks-")  # noqa: SIM115
    faulthandler.register(_SIGNAL, file=_stacks, all_threads=True)
    return _stacks.name


def stacks_path() -> str:
    """The path of that file; "" where there is none."""
    return "" if _stacks is None else str(_stacks.name)


def stacks(pids: Iterable[int]) -> str:
    """Where all threads of these processes are, or of the first few: in Python, where they tell it,
    and outside of it, where there is a debugger."""
    return "\n".join(text for pid in itertools.islice(pids, _MOST) for text in _of_one(pid))


def _of_one(pid: int) -> Iterator[str]:
    yield f"---- process {pid}: {_command(pid)[:200]} ({_field(pid, 'State')})"
    if stacks_path() and int(_field(pid, "SigCgt") or "0", 16) >> (_SIGNAL - 1) & 1:
        yield _answer(pid, stacks_path())
    if shutil.which("gdb") and pid != os.getpid():
        command = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all backtrace 25"]
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
            lines = done.stdout.splitlines()
            yield "\n".join(ln[:160] for ln in lines if ln.startswith(("#", "Thread ")))


def _answer(pid: int, path: str) -> str:
    """The stacks that the process writes when it is asked."""
    with open(path) as file:
        file.seek(0, os.SEEK_END)
        os.kill(pid, _SIGNAL)
        text, end = "", time.monotonic() + 2
        while time.monotonic() < end:
            time.sleep(0.1)
            more = file.read()
            if text and not more:
                break
            text += more
    return text.strip()
