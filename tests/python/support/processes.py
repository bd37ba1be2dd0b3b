"""The tests' questions about processes: which ones this started, and whether one still runs."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import os


def children() -> list[int]:
    """Processes that this one started and that still run, but for those that `multiprocessing`
    keeps for itself."""
    gc.collect()  # what a traceback held
    with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as file:
        pids = [int(pid) for pid in file.read().split()]
    return [pid for pid in pids if not _is_helper(pid)]


def _is_helper(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            line = file.read()
    except FileNotFoundError:
        return True
    return "resource_tracker" in line or "multiprocessing.forkserver" in line


def is_running(pid: int) -> bool:
    """Whether the process is there, and not as one that only waits to be asked how it ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
