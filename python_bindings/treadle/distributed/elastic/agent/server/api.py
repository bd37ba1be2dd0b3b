"""The workers of an agent, and their results."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Callable, Dict, List, Optional, Union

from treadle.distributed.elastic.multiprocessing.errors import ProcessFailure
from treadle.distributed.elastic.rendezvous.api import RendezvousHandler
from treadle.distributed.store import Store

DEFAULT_ROLE = "default"


@dataclass
class WorkerSpec:
    """The workers of one machine: how many run what, how often they may start anew."""

    role: str
    local_world_size: int
    rdzv_handler: RendezvousHandler
    fn: Optional[Callable] = None
    entrypoint: Union[Callable, str, None] = None
    args: tuple = ()
    max_restarts: int = 3
    monitor_interval: float = 0.1
    master_port: Optional[int] = None
    master_addr: Optional[str] = None
    local_addr: Optional[str] = None
    event_log_handler: str = "null"
    numa_options: Any = None
    duplicate_stdout_filters: Optional[List[str]] = None
    duplicate_stderr_filters: Optional[List[str]] = None
    virtual_local_rank: bool = False

    def __post_init__(self) -> None:
        if self.local_world_size < 1:
            raise ValueError(
                f"WorkerSpec: expected local_world_size > 0, got {self.local_world_size}"
            )
        if self.monitor_interval <= 0:
            raise ValueError(
                f"WorkerSpec: expected monitor_interval > 0, got {self.monitor_interval}"
            )
        if self.fn is not None:
            self.entrypoint = self.fn
        if self.entrypoint is None:
            raise ValueError("WorkerSpec: expected an entrypoint, got None")

    def get_entrypoint_name(self) -> str:
        """The function or the program, as messages name it."""
        if isinstance(self.entrypoint, str):
            return self.entrypoint.rpartition("/")[2]
        return str(getattr(self.entrypoint, "__qualname__", self.entrypoint))


class Worker:
    """A process of the group: its numbers in the machine, in the group and in its role."""

    def __init__(
        self,
        local_rank: int,
        global_rank: int = -1,
        role_rank: int = -1,
        world_size: int = -1,
        role_world_size: int = -1,
    ) -> None:
        self.id: Any = None
        self.local_rank = local_rank
        self.global_rank = global_rank
        self.role_rank = role_rank
        self.world_size = world_size
        self.role_world_size = role_world_size

    def __repr__(self) -> str:
        return f"Worker(local_rank={self.local_rank}, global_rank={self.global_rank})"


class WorkerState(str, Enum):
    """How workers are."""

    UNKNOWN = "UNKNOWN"
    INIT = "INIT"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @staticmethod
    def is_running(state: WorkerState) -> bool:
        """Whether the processes are there."""
        return state in (WorkerState.HEALTHY, WorkerState.UNHEALTHY)


class WorkerGroup:
    """The workers of a machine, and what their meeting gave them."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.spec = spec
        self.workers = [Worker(local_rank) for local_rank in range(spec.local_world_size)]
        self.store: Optional[Store] = None
        self.group_rank: Optional[int] = None
        self.group_world_size: Optional[int] = None
        self.master_addr: Optional[str] = None
        self.master_port: Optional[int] = None
        self.state = WorkerState.INIT


@dataclass
class RunResult:
    """The results of the workers, by rank, or their failures."""

    state: WorkerState
    return_values: Dict[int, Any] = field(default_factory=dict)
    failures: Dict[int, ProcessFailure] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """Whether the run failed."""
        return self.state == WorkerState.FAILED


class ElasticAgent(ABC):
    """Starts the workers of a machine, and watches them until they end."""

    @abstractmethod
    def run(self, role: str = DEFAULT_ROLE) -> RunResult:
        """Start the workers, again where that is needed, and wait for them."""

    @abstractmethod
    def get_worker_group(self, role: str = DEFAULT_ROLE) -> WorkerGroup:
        """The workers as they are now."""
