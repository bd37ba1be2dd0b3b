"""Child processes of tests. No wait for one is without a limit: a child that ends without an answer
is an error that says how it ended, and one that gives none in time says where it hangs.

    child = Child(function, 1, 2)
    child.result()  # that of function(1, 2)

A child begins as a fork of a process that has imported the library and run nothing. So nothing that
other tests did is in its way, and the function is one that can be pickled. Only a test that is
about forks gives method="fork".
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import pickle
import signal
import sys
import time
import traceback
from multiprocessing import forkserver
from multiprocessing.connection import wait
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

import pytest

import processes
from source_tree import ROOT

LIMIT = 120.0  # seconds, on a machine that does other things

_CLEAN = "forkserver"
# Modules that most children import.
_OF_THE_LIBRARY = "_faults _gloo checkpoint fsdp pipelining tensor.parallel"
_PRELOADED = ["child_processes", "process_groups", "encodings.idna", "numpy.random", "pytest"]
_PRELOADED += ["treadle.nn.parallel.distributed", "treadle.utils.data"]
_PRELOADED += [f"treadle.distributed.{name}" for name in _OF_THE_LIBRARY.split()]
multiprocessing.set_forkserver_preload(_PRELOADED)
# The folder of the bytecode of all other modules.
_COMPILED = str(ROOT / "build" / "tests_compiled")

_to_parent: Any = None


def say(value: Any) -> None:
    """Send a value to the parent, which hears it before the result."""
    _to_parent.send_bytes(pickle.dumps(("said", value)))


def hear() -> Any:
    """The next value that the parent says."""
    return _to_parent.recv()


def has_heard() -> bool:
    """Whether the parent has said something."""
    return bool(_to_parent.poll())


class _Setting(NamedTuple):
    """Settings of the parent that a child takes over, where it is no fork of it."""

    environment: Dict[str, str]
    stacks: str  # the file for them

    def adopt(self) -> None:
        """Take it over."""
        os.environ.clear()
        os.environ.update(self.environment)
        sys.dont_write_bytecode, sys.pycache_prefix = False, _COMPILED
        processes.tell_stacks(self.stacks)
        faulthandler.enable()


def _begin_server() -> None:
    """Start the process that the children are forks of, if it is not there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()


def _run(connection: Any, call: bytes, setting: Optional[_Setting]) -> None:
    global _to_parent
    _to_parent = connection
    if setting is not None:
        setting.adopt()
    try:
        # Not by shared memory: the process may end before another one has opened it.
        function, args = pickle.loads(call)
        answer = pickle.dumps(("result", function(*args)))
    except BaseException:
        answer = pickle.dumps(("error", traceback.format_exc()))
    connection.send_bytes(answer)


class Hanging(AssertionError):
    """A process gives no answer."""


class Child:
    """A process that calls a function."""

    def __init__(self, function: Callable, *args: Any, method: str = _CLEAN) -> None:
        context = multiprocessing.get_context(method)
        self._connection, there = context.Pipe()
        setting = None
        if method == _CLEAN:
            _begin_server()
            setting = _Setting(dict(os.environ), processes.stacks_path())
        self._process = context.Process(  # type: ignore[attr-defined]
            target=_run, args=(there, pickle.dumps((function, args)), setting)
        )
        self._process.start()
        there.close()
        self._beside: Sequence[Child] = [self]

    @property
    def pid(self) -> int:
        """The number of the process."""
        return int(self._process.pid)

    def say(self, value: Any) -> None:
        """Send a value to the child."""
        self._connection.send(value)

    def hear(self, limit: float = LIMIT) -> Any:
        """The next value that the child says."""
        return self._next("said", limit)

    def result(self, limit: float = LIMIT) -> Any:
        """The result of the function."""
        return self._next("result", limit)

    def end(self, limit: float = LIMIT) -> int:
        """How the process ends: its exit code, or less than 0 for a signal."""
        if not wait([self._process.sentinel], limit):
            self._hangs(f"the end within {limit:.3g} s")
        self._process.join()
        return int(self._process.exitcode)

    def kill(self) -> None:
        """End the process, if it still runs."""
        self._process.kill()
        self._process.join()
        self._connection.close()

    def _next(self, kind: str, limit: float) -> Any:
        ready = wait([self._connection, self._process.sentinel], limit)
        if not ready:
            self._hangs(f"an answer within {limit:.3g} s")
        try:
            # An answer that it sent is there when it has ended.
            if not self._connection.poll():
                raise EOFError
            got, value = pickle.loads(self._connection.recv_bytes())
        except EOFError:
            ended = _ended(self.end())
            raise AssertionError(f"expected an answer of a process, but it {ended}") from None
        if got == "error":
            raise AssertionError(value)
        assert got == kind, f"expected a value that was {kind}, got {value!r}, which was {got}"
        return value

    def _hangs(self, expected: str) -> None:
        text = processes.stacks(child.pid for child in self._beside)
        for child in self._beside:
            child.kill()
        raise Hanging(f"expected {expected} of a process, got none\n{text}")


def _ended(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"


def results(children: Sequence[Child], limit: float = LIMIT) -> List[Any]:
    """The results of the functions of all children. All have ended afterwards."""
    end = time.monotonic() + limit
    found, errors = [], []
    for child in children:
        child._beside = children
    try:
        for number, child in enumerate(children):
            try:
                found.append(child.result(max(end - time.monotonic(), 0.1)))
                child.end(max(end - time.monotonic(), 0.1))
            except AssertionError as error:
                errors.append(f"---- child {number}\n{error}")
                if isinstance(error, Hanging):
                    break
    finally:
        for child in children:
            child.kill()
    assert not errors, "\n".join(errors)
    return found
