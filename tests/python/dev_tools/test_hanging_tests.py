"""Tests that hang, and their child processes: they fail in time and say where they hang."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import shutil
import signal
import time
from typing import NoReturn

import pytest

import child_processes
from child_processes import Child, results
from processes import descendants, is_running
from time_limit import limited

SHORT = 0.3  # seconds


def _sleeps(seconds: float) -> None:
    time.sleep(seconds)


def _answers() -> None:
    child_processes.say(child_processes.hear() + 1)


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_answers(method: str) -> None:
    child = Child(_answers, method=method)
    child.say(1)
    assert child.hear() == 2 and child.result() is None and child.end() == 0
    with pytest.raises(AssertionError, match="TypeError: .*_answers.* takes 0 positional"):
        results([Child(_answers, 1, method=method)])


def test_a_child_sees_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("1", "2"):
        monkeypatch.setenv("TREADLE_OF_A_TEST", value)
        assert results([Child(os.getenv, "TREADLE_OF_A_TEST")]) == [value]


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_child_that_ends_without_an_answer(method: str) -> None:
    with pytest.raises(AssertionError) as raised:
        results([Child(os._exit, 3, method=method), Child(os.abort, method=method)])
    assert str(raised.value).splitlines() == [
        "---- child 0",
        "expected an answer of a process, but it ended with 3",
        "---- child 1",
        "expected an answer of a process, but it was ended by SIGABRT",
    ]


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_child_that_hangs(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)  # the debugger takes a while
    children = [Child(_sleeps, 60, method=method) for _ in range(2)]
    with pytest.raises(AssertionError) as raised:
        results(children, SHORT)
    text = str(raised.value)
    assert f"expected an answer within {SHORT} s of a process, got none" in text
    for child in children:
        assert f"---- process {child.pid}: " in text and not is_running(child.pid)
    assert text.count(" in _sleeps") == 2


def _hangs_in_a_child() -> NoReturn:
    while True:
        time.sleep(60)


def test_a_test_that_hangs() -> None:
    """In a wait for a child that hangs, too."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        _hangs_in_a_child()
    began = time.monotonic()
    with pytest.raises(pytest.fail.Exception) as raised, limited(SHORT):
        os.read(here, 1)
    os.close(here)
    os.close(there)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL and child not in descendants()
    assert time.monotonic() - began < 60
    text = str(raised.value)
    assert text.startswith(f"expected the test to end within {SHORT} s\n")
    assert f"---- process {os.getpid()}: " in text and " in test_a_test_that_hangs" in text
    assert f"---- process {child}: " in text and " in _hangs_in_a_child" in text


def test_no_alarm_is_left() -> None:
    def state() -> tuple:
        return signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)[0] > 0

    with limited(60):
        before = state()
        with limited(30):
            assert signal.getitimer(signal.ITIMER_REAL)[0] <= 30
        assert state() == before and signal.getitimer(signal.ITIMER_REAL)[0] > 30
