"""The places where the output of workers goes: to the console, to a file for each, or to both.

<log_dir>/<run id>_<random>/attempt_0/<local rank>/stdout.log, stderr.log, error.json
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any, Dict, Optional, Set, Union


class Std(IntFlag):
    """Streams of a process."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = 3

    @classmethod
    def from_str(cls, vm: str) -> Union[Std, Dict[int, Std]]:
        """`3` as ALL for every process, `0:1,1:2` as OUT for the local rank 0 and ERR for 1.
        ValueError for other text."""
        if re.fullmatch(r"[0-3]", vm):
            return cls(int(vm))
        if re.fullmatch(r"\d+:[0-3](,\d+:[0-3])*", vm):
            pairs = (pair.split(":") for pair in vm.split(","))
            return {int(rank): cls(int(which)) for rank, which in pairs}
        raise ValueError(
            f"expected streams as 0, 1, 2 or 3, or for local ranks as in 0:3,1:1, got {vm!r}"
        )


Which = Union[Std, Dict[int, Std]]


def to_map(val_or_map: Which, local_world_size: int) -> Dict[int, Std]:
    """The streams of each local rank; none for those that a dictionary does not have."""
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


@dataclass
class LogsDest:
    """The files of each local rank; an empty name stands for the console."""

    stdouts: Dict[int, str] = field(default_factory=dict)
    stderrs: Dict[int, str] = field(default_factory=dict)
    tee_stdouts: Dict[int, str] = field(default_factory=dict)
    tee_stderrs: Dict[int, str] = field(default_factory=dict)
    error_files: Dict[int, str] = field(default_factory=dict)
    filtered_stdout: str = ""
    filtered_stderr: str = ""


class LogsSpecs(ABC):
    """The streams that go to files (`redirects`), those that go to files and to the console
    (`tee`), and the local ranks whose output the console shows."""

    def __init__(
        self,
        log_dir: Optional[str] = None,
        redirects: Which = Std.NONE,
        tee: Which = Std.NONE,
        local_ranks_filter: Optional[Set[int]] = None,
    ) -> None:
        self._root_log_dir = log_dir
        self._redirects = redirects
        self._tee = tee
        self._local_ranks_filter = local_ranks_filter

    @abstractmethod
    def reify(self, envs: Dict[int, Dict[str, str]]) -> LogsDest:
        """The files for workers with these environments, by local rank."""

    @property
    @abstractmethod
    def root_log_dir(self) -> str:
        """The folder of all files."""


class DefaultLogsSpecs(LogsSpecs):
    """A folder for each run, attempt and local rank. Without `log_dir` the run's folder is a
    temporary one."""

    def __init__(
        self,
        log_dir: Optional[str] = None,
        redirects: Which = Std.NONE,
        tee: Which = Std.NONE,
        local_ranks_filter: Optional[Set[int]] = None,
    ) -> None:
        super().__init__(log_dir, redirects, tee, local_ranks_filter)
        self._is_temporary = log_dir is None
        self._run_folder: Optional[str] = None

    @property
    def root_log_dir(self) -> str:
        """The folder of all files."""
        return str(self._root_log_dir)

    def _folder(self, run_id: str) -> str:
        if self._run_folder is None:
            if self._root_log_dir is not None:
                os.makedirs(self._root_log_dir, exist_ok=True)
            start = re.sub(r"[^\w.-]", "_", run_id or "run")[:60]
            self._run_folder = tempfile.mkdtemp(prefix=f"{start}_", dir=self._root_log_dir)
            if self._root_log_dir is None:
                self._root_log_dir = self._run_folder
        return self._run_folder

    def reify(self, envs: Dict[int, Dict[str, str]]) -> LogsDest:
        """The files for workers with these environments, by local rank. Makes the folders."""
        one: Dict[str, str] = next(iter(envs.values()), {})
        attempt = one.get("TORCHELASTIC_RESTART_COUNT", "0")
        folder = os.path.join(
            self._folder(one.get("TORCHELASTIC_RUN_ID", "")), f"attempt_{attempt}"
        )
        # Workers that start anew without a failure have the same attempt.
        while os.path.exists(folder):
            folder += "+"
        tee, redirects = to_map(self._tee, len(envs)), to_map(self._redirects, len(envs))
        made = LogsDest()
        shown = self._local_ranks_filter
        for rank in envs:
            own = os.path.join(folder, str(rank))
            os.makedirs(own, exist_ok=True)
            wanted = tee.get(rank, Std.NONE) | redirects.get(rank, Std.NONE)
            is_shown = shown is None or rank in shown
            parts: Any = (
                (Std.OUT, "stdout.log", made.stdouts, made.tee_stdouts),
                (Std.ERR, "stderr.log", made.stderrs, made.tee_stderrs),
            )
            for std, name, files, teed in parts:
                path = os.path.join(own, name)
                files[rank] = path if wanted & std else "" if is_shown else os.devnull
                if is_shown and tee.get(rank, Std.NONE) & std:
                    teed[rank] = path
            made.error_files[rank] = os.path.join(own, "error.json")
        made.filtered_stdout = os.path.join(folder, "filtered_stdout.log")
        made.filtered_stderr = os.path.join(folder, "filtered_stderr.log")
        return made

    def _end(self, failed: bool) -> None:
        """Remove a temporary folder, unless files of failures are in it."""
        if self._is_temporary and self._run_folder is not None and not failed:
            shutil.rmtree(self._run_folder, ignore_errors=True)


__all__ = ["DefaultLogsSpecs", "LogsDest", "LogsSpecs", "Std", "to_map"]
