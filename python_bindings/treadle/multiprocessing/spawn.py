"""spawn: the same function in several processes, which are waited for together.

    def train(rank, model): ...

    spawn(train, args=(model.share_memory(),), nprocs=4)

If one of them fails the others are ended, and what it raised is raised here, with its traceback.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from multiprocessing import connection
from typing import Callable, Optional

from treadle import _names
from treadle.multiprocessing.contexts import get_context

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"

_PR_SET_PDEATHSIG = 1


class ProcessException(Exception):
    """A process failed: the `error_index`-th, of pid `error_pid`."""

    __slots__ = ["error_index", "error_pid"]

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process ended by an exception; the message has its traceback."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process ended with an exit code other than 0, or by a signal."""

    __slots__ = ["exit_code"]

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: Optional[str] = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple:
        arguments = (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)
        return type(self), arguments


def _end_with_parent(parent: int) -> None:
    """Have the system interrupt this process when its parent ends, however that happens."""
    # Programs that are started in the background ignore interrupts.
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    how = signal.SIGTERM if ignored else signal.SIGINT
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, how)
    except (OSError, AttributeError):
        return  # a system that cannot
    if os.getppid() != parent:  # it ended before
        os.kill(os.getpid(), how)


def _run(fn: Callable, index: int, args: tuple, error_file: str, parent: Optional[int]) -> None:
    """The body of a process."""
    if parent is not None:
        _end_with_parent(parent)
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent is interrupted as well, and says so
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes: list, error_files: list[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: Optional[float] = None, grace_period: Optional[float] = None) -> bool:  # type: ignore[return]
        """Wait for the processes, at most `timeout` seconds. True when all have ended well.

        Where one failed, the others have `grace_period` seconds to end by themselves, if it is
        given. Then they are asked to end, and killed if they have not after as many seconds (30
        unless given), and ProcessRaisedException or ProcessExitedException is raised.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in connection.wait(list(self.sentinels), timeout=timeout):
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
                break
        if failed is None:
            if not self.sentinels:
                self._forget_files()
            return not self.sentinels
        self._end_all(grace_period)
        try:
            self._raise(failed)
        finally:
            self._forget_files()

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def _end_all(self, grace_period: Optional[float] = None) -> None:
        if grace_period is not None:
            self._wait(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._wait(30.0 if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                warnings.warn(
                    f"Unable to shutdown process {process.pid} via SIGTERM, forcing it",
                    stacklevel=2,
                )
                process.kill()
            process.join()

    def _raise(self, index: int) -> None:
        process = self.processes[index]
        pid, code = int(process.pid), process.exitcode
        if os.path.getsize(self.error_files[index]) > 0:
            with open(self.error_files[index], "rb") as file:
                text = pickle.load(file)
            message = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            raise ProcessRaisedException(message, index, pid)
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            message = f"process {index} terminated with signal {name}"
            raise ProcessExitedException(message, index, pid, code, name)
        message = f"process {index} terminated with exit code {code}"
        raise ProcessExitedException(message, index, pid, code)

    def _forget_files(self) -> None:
        for file in self.error_files:
            if os.path.exists(file):
                os.unlink(file)


class SpawnContext(ProcessContext):
    """The result of spawn() where it does not wait."""


def start_processes(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Optional[ProcessContext]:
    """Run fn(i, *args) in process i of `nprocs`, started by `start_method`. Waits for all of them
    unless `join` is False; then it returns a ProcessContext. With TORCH_MP_PARALLEL_START=1 in the
    environment, processes of "forkserver" are started at the same time. Where one cannot be
    started, the others are ended."""
    context = get_context(start_method)
    # Where the process is copied by a server, the server is its parent.
    parent = None if start_method == "forkserver" else os.getpid()
    processes, files = [], []
    for index in range(nprocs):
        handle, name = tempfile.mkstemp(prefix="treadle-process-", suffix=".error")
        os.close(handle)
        arguments = (fn, index, args, name, parent)
        processes.append(context.Process(target=_run, args=arguments, daemon=daemon))
        files.append(name)
    try:
        if start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START) == "1":
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(max_workers=max(nprocs, 1)) as threads:
                list(threads.map(lambda process: process.start(), processes))
        else:
            for process in processes:
                process.start()
    except BaseException:
        failed = ProcessContext([p for p in processes if p.pid is not None], files)
        failed._end_all()
        failed._forget_files()
        raise
    started = SpawnContext(processes, files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Optional[ProcessContext]:
    """start_processes() with processes that begin anew."""
    if start_method != "spawn":
        warnings.warn(
            "This method only supports start_method=spawn (got: "
            f"{start_method}).\nTo use a different start_method use:\n\t\t"
            f" {_names.spoken()}.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")


__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]
