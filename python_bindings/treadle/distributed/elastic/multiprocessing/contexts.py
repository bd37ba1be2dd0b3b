"""The two kinds of workers: programs, and functions in processes of their own."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from typing import Any, Callable, Dict, List, Optional, TextIO

from treadle.distributed.elastic.multiprocessing.api import PContext, RunProcsResult
from treadle.distributed.elastic.multiprocessing.errors import ProcessFailure, record
from treadle.distributed.elastic.multiprocessing.logs import LogsSpecs
from treadle.distributed.elastic.multiprocessing.redirects import redirect

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _end_with_agent() -> None:
    """Have the system end this process when the thread that began it ends."""
    prctl = getattr(_libc, "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _output(path: str) -> Optional[TextIO]:
    """A file to write to; None for the console."""
    return open(path, "a") if path else None  # noqa: SIM115


class SubprocessContext(PContext):
    """Workers that are programs. Each is the leader of a session, to which the processes that it
    starts belong."""

    def _start_one(self, rank: int) -> None:
        files = [_output(self.dest.stdouts[rank]), _output(self.dest.stderrs[rank])]
        try:
            self._processes[rank] = subprocess.Popen(
                [str(self.entrypoint), *map(str, self.args[rank])],
                env={**os.environ, **self.envs[rank]},
                stdout=files[0],
                stderr=files[1],
                start_new_session=True,
                preexec_fn=_end_with_agent,
            )
        finally:
            for file in files:
                if file is not None:
                    file.close()

    def _poll(self) -> Optional[RunProcsResult]:
        codes = {rank: process.poll() for rank, process in self._processes.items()}
        failures = {rank: self._failure(rank, code) for rank, code in codes.items() if code}
        if failures:
            return self._result(failures)
        if None in codes.values():
            return None
        return self._result({}, dict.fromkeys(codes))

    def _is_alive(self, rank: int) -> bool:
        return self._processes[rank].poll() is None


def _work(
    rank: int, fn: Callable, args: tuple, env: Dict[str, str], out: str, err: str, sender: Any
) -> None:
    """The body of a process that runs a function."""
    os.setsid()
    _end_with_agent()
    os.environ.update(env)
    for std, path in (("stdout", out), ("stderr", err)):
        if path:
            redirect(std, path).__enter__()  # until the process ends
    value = record(fn)(*args)
    sender.send(value)
    sender.close()


class MultiprocessContext(PContext):
    """Workers that are functions; what they return is sent back, pickled."""

    def __init__(
        self,
        name: str,
        entrypoint: Callable,
        args: Dict[int, tuple],
        envs: Dict[int, Dict[str, str]],
        start_method: str,
        logs_specs: LogsSpecs,
        log_line_prefixes: Optional[Dict[int, str]] = None,
        numa_options: Any = None,
        duplicate_stdout_filters: Optional[List[str]] = None,
        duplicate_stderr_filters: Optional[List[str]] = None,
    ) -> None:
        more = (numa_options, duplicate_stdout_filters, duplicate_stderr_filters)
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes, *more)
        from treadle.multiprocessing.contexts import get_context

        self._context: Any = get_context(start_method)
        self._receivers: Dict[int, Any] = {}
        self._values: Dict[int, Any] = {}

    def _start_one(self, rank: int) -> None:
        receiver, sender = self._context.Pipe(duplex=False)
        dest = self.dest
        arguments = (
            rank,
            self.entrypoint,
            self.args[rank],
            self.envs[rank],
            dest.stdouts[rank],
            dest.stderrs[rank],
            sender,
        )
        process = self._context.Process(target=_work, args=arguments, name=f"{self.name}{rank}")
        process.start()
        sender.close()
        self._processes[rank], self._receivers[rank] = process, receiver

    def _receive(self, rank: int) -> None:
        receiver = self._receivers.get(rank)
        if receiver is None or not receiver.poll():
            return
        try:
            self._values[rank] = receiver.recv()
        except EOFError:
            pass  # it failed
        receiver.close()
        del self._receivers[rank]

    def _poll(self) -> Optional[RunProcsResult]:
        failures: Dict[int, ProcessFailure] = {}
        ended = 0
        for rank, process in self._processes.items():
            self._receive(rank)
            if not process.is_alive():
                process.join()
                ended += 1
                self._receive(rank)
                if process.exitcode or rank not in self._values:
                    failures[rank] = self._failure(rank, process.exitcode or 1)
        if failures:
            return self._result(failures)
        return self._result({}, self._values) if ended == self.nprocs else None

    def _is_alive(self, rank: int) -> bool:
        self._receive(rank)
        return bool(self._processes[rank].is_alive())

    def _signal(self, rank: int, what: signal.Signals) -> None:
        super()._signal(rank, what)
        process = self._processes[rank]
        if process.is_alive():  # it may not be the leader of a session yet
            try:
                os.kill(process.pid, what)
            except ProcessLookupError:
                pass


__all__ = ["MultiprocessContext", "SubprocessContext"]
