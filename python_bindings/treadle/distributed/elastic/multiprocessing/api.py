"""Workers: processes with an environment and an error file of their own, which are waited for, and
ended, together.

    context = start_processes("trainer", train, args, envs, DefaultLogsSpecs())
    result = context.wait()            # a RunProcsResult
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Union

from treadle.distributed.elastic.multiprocessing.errors import ProcessFailure
from treadle.distributed.elastic.multiprocessing.logs import (
    DefaultLogsSpecs,
    LogsDest,
    LogsSpecs,
    Std,
    to_map,
)
from treadle.distributed.elastic.multiprocessing.tail_log import TailLog


class SignalException(Exception):
    """This process was asked to end by the signal `sigval`."""

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


@dataclass
class RunProcsResult:
    """The results of workers, or their failures, by local rank; and the files of their output."""

    return_values: Dict[int, Any] = field(default_factory=dict)
    failures: Dict[int, ProcessFailure] = field(default_factory=dict)
    stdouts: Dict[int, str] = field(default_factory=dict)
    stderrs: Dict[int, str] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Whether a worker failed."""
        return bool(self.failures)


class PContext(ABC):
    """Workers of one machine, by local rank. When one fails the others are ended."""

    def __init__(
        self,
        name: str,
        entrypoint: Union[Callable, str],
        args: Dict[int, tuple],
        envs: Dict[int, Dict[str, str]],
        logs_specs: LogsSpecs,
        log_line_prefixes: Optional[Dict[int, str]] = None,
        numa_options: Any = None,
        duplicate_stdout_filters: Optional[List[str]] = None,
        duplicate_stderr_filters: Optional[List[str]] = None,
    ) -> None:
        if numa_options is not None:
            raise ValueError(
                "start_processes: expected numa_options = None, as workers are not bound to the "
                f"CPUs near a device, got {type(numa_options).__name__}"
            )
        if set(args) != set(range(len(args))) or set(args) != set(envs):
            raise RuntimeError(
                f"start_processes: expected args and envs for the local ranks 0, 1, ..., got "
                f"{sorted(args)} and {sorted(envs)}"
            )
        self.name = name
        self.entrypoint = entrypoint
        self.args = args
        self.nprocs = len(args)
        self._processes: Dict[int, Any] = {}  # those that have begun, by local rank
        self.dest: LogsDest = logs_specs.reify(envs)
        self.envs = {
            rank: {**env, "TORCHELASTIC_ERROR_FILE": self.dest.error_files[rank]}
            for rank, env in envs.items()
        }
        self._tails = [
            TailLog(name, self.dest.tee_stdouts, sys.stdout, log_line_prefixes),
            TailLog(name, self.dest.tee_stderrs, sys.stderr, log_line_prefixes),
        ]
        self._filtered: List[Any] = []
        for filters, files, path in (
            (duplicate_stdout_filters, self.dest.stdouts, self.dest.filtered_stdout),
            (duplicate_stderr_filters, self.dest.stderrs, self.dest.filtered_stderr),
        ):
            logged = {rank: file for rank, file in files.items() if file not in ("", os.devnull)}
            if filters and logged:
                to = open(path, "w", encoding="utf-8")  # noqa: SIM115
                self._filtered.append(to)
                self._tails.append(
                    TailLog(name, logged, to, log_line_prefixes, log_line_filter=filters)
                )

    def start(self) -> None:
        """Begin all workers. Where one cannot begin, the others are ended."""
        for tail in self._tails:
            tail.start()
        try:
            for rank in range(self.nprocs):
                self._start_one(rank)
        except BaseException:
            self.close(signal.SIGKILL)
            raise

    @abstractmethod
    def _start_one(self, rank: int) -> None:
        """Begin a worker."""

    @abstractmethod
    def _poll(self) -> Optional[RunProcsResult]:
        """The result when all have ended, or one has failed; None before."""

    def pids(self) -> Dict[int, int]:
        """The ids of the processes, by local rank."""
        return {rank: process.pid for rank, process in self._processes.items()}

    @abstractmethod
    def _is_alive(self, rank: int) -> bool:
        """Whether a worker is there. Takes note of one that has ended."""

    def wait(self, timeout: float = -1, period: float = 1) -> Optional[RunProcsResult]:
        """Wait until all workers have ended, or one has failed; then the others are ended. None
        after `timeout` seconds, if that is not negative. Looks every `period` seconds."""
        end = None if timeout < 0 else time.monotonic() + timeout
        pause = 0.005  # grows up to the period
        while True:
            result = self._poll()
            if result is not None:
                self.close(signal.SIGTERM)
                return result
            if end is not None and time.monotonic() >= end:
                return None
            pause = min(2 * pause, period)
            time.sleep(pause if end is None else max(0.0, min(pause, end - time.monotonic())))

    def close(self, death_sig: Optional[signal.Signals] = None, timeout: float = 30) -> None:
        """End the workers that are there, with all processes that they started: by `death_sig`,
        SIGTERM unless given, and by SIGKILL after `timeout` seconds."""
        alive = [rank for rank in self.pids() if self._is_alive(rank)]
        for rank in alive:
            self._signal(rank, signal.SIGTERM if death_sig is None else death_sig)
            self._signal(rank, signal.SIGCONT)  # one that is stopped can only end when it goes on
        end = time.monotonic() + timeout
        while self._are_alive(alive) and time.monotonic() < end:
            time.sleep(0.01)
        for rank in self.pids():
            self._signal(rank, signal.SIGKILL)
        while self._are_alive(alive):
            time.sleep(0.01)
        for tail in self._tails:
            tail.stop()
        for file in self._filtered:
            file.close()

    def _are_alive(self, ranks: List[int]) -> bool:
        """Whether a worker is there. Takes note of all that have ended."""
        return bool([rank for rank in ranks if self._is_alive(rank)])

    def _signal(self, rank: int, what: signal.Signals) -> None:
        """Send a signal to a worker and the processes that it started."""
        pid = self.pids()[rank]
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, what)

    def _failure(self, rank: int, code: int) -> ProcessFailure:
        error_file = self.dest.error_files[rank]
        return ProcessFailure(rank, self.pids()[rank], code, error_file)

    def _result(
        self, failures: Dict[int, ProcessFailure], values: Optional[Dict[int, Any]] = None
    ) -> RunProcsResult:
        stdouts, stderrs = self.dest.stdouts, self.dest.stderrs
        return RunProcsResult(values or {}, failures, stdouts, stderrs)


def start_processes(
    name: str,
    entrypoint: Union[Callable, str],
    args: Dict[int, tuple],
    envs: Dict[int, Dict[str, str]],
    logs_specs: LogsSpecs,
    log_line_prefixes: Optional[Dict[int, str]] = None,
    start_method: str = "spawn",
    numa_options: Any = None,
    duplicate_stdout_filters: Optional[List[str]] = None,
    duplicate_stderr_filters: Optional[List[str]] = None,
) -> PContext:
    """Start a worker for each local rank: `entrypoint(*args[rank])` for a function, a process with
    these arguments for the name of a program. `start_method` is how functions are started."""
    from treadle.distributed.elastic.multiprocessing import contexts

    kind: Any = contexts.SubprocessContext
    more: Dict[str, Any] = {}
    if not isinstance(entrypoint, str):
        kind, more = contexts.MultiprocessContext, {"start_method": start_method}
    made: PContext = kind(
        name=name,
        entrypoint=entrypoint,
        args=args,
        envs=envs,
        logs_specs=logs_specs,
        log_line_prefixes=log_line_prefixes,
        numa_options=numa_options,
        duplicate_stdout_filters=duplicate_stdout_filters,
        duplicate_stderr_filters=duplicate_stderr_filters,
        **more,
    )
    made.start()
    return made


def line_prefix(template: str, rank: int, env: Dict[str, str], host: str) -> str:
    """A template of line prefixes, with `${rank}`, `${local_rank}`, `${role_name}` and
    `${hostname}` filled in."""
    values = {
        "rank": env.get("RANK", ""),
        "local_rank": str(rank),
        "role_name": env.get("ROLE_NAME", ""),
        "hostname": host,
    }
    return re.sub(r"\$\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)


__all__ = [
    "DefaultLogsSpecs",
    "LogsDest",
    "LogsSpecs",
    "PContext",
    "RunProcsResult",
    "SignalException",
    "Std",
    "start_processes",
    "to_map",
]
