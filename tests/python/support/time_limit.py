"""A limit for the time of a test. One that hangs fails and says where it hangs, together with the
processes that it started, which are ended; the other tests go on."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import Any, Iterator

import pytest

import processes


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Fail the test after so many seconds; 0 for no limit."""
    if not seconds or threading.current_thread() is not threading.main_thread():
        yield
        return
    test = os.getpid()

    def late(*event: Any) -> None:
        if os.getpid() != test:  # a child of a fork, with an alarm of its own
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGALRM)
            return
        hanging = processes.descendants()
        text = processes.stacks([test, *hanging])
        for pid in hanging:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        pytest.fail(f"expected the test to end within {seconds:g} s\n{text}")

    before = signal.signal(signal.SIGALRM, late)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)  # of a limit around this one
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, left)
