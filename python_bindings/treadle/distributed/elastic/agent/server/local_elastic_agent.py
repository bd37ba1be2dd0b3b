"""The agent whose workers are processes of its machine."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
import time
from typing import Any, Dict, Iterator, List, Optional

from treadle.distributed.elastic import events
from treadle.distributed.elastic.agent.server.api import (
    DEFAULT_ROLE,
    ElasticAgent,
    RunResult,
    WorkerGroup,
    WorkerSpec,
    WorkerState,
)
from treadle.distributed.elastic.multiprocessing.api import (
    LogsSpecs,
    PContext,
    SignalException,
    line_prefix,
    start_processes,
)
from treadle.distributed.elastic.rendezvous.api import (
    RendezvousConnectionError,
    RendezvousError,
    RendezvousGracefulExitError,
)
from treadle.distributed.elastic.utils.api import macros
from treadle.distributed.elastic.utils.logging import get_logger
from treadle.distributed.errors import DistStoreError

_logger = get_logger(__name__)


class LocalElasticAgent(ElasticAgent):
    """Starts workers by start_processes(). Where one fails, all of the group start anew, at most
    `spec.max_restarts` times; where a machine comes or goes, they do as well.

    `shutdown_timeout` is for how many seconds workers may end by themselves when they are asked to.
    """

    def __init__(
        self,
        spec: WorkerSpec,
        logs_specs: LogsSpecs,
        start_method: str = "spawn",
        exit_barrier_timeout: float = 300,
        log_line_prefix_template: Optional[str] = None,
        shutdown_timeout: float = 30,
    ) -> None:
        self._group = WorkerGroup(spec)
        self._logs = logs_specs
        self._start_method = start_method
        self._exit_seconds = exit_barrier_timeout
        self._prefix = log_line_prefix_template
        self._shutdown_seconds = shutdown_timeout
        self._context: Optional[PContext] = None
        self._restarts = 0

    def get_worker_group(self, role: str = DEFAULT_ROLE) -> WorkerGroup:
        """The workers as they are now. ValueError for a role that they do not have."""
        if role not in (DEFAULT_ROLE, self._group.spec.role):
            raise ValueError(f"expected the role {self._group.spec.role!r}, got {role!r}")
        return self._group

    def run(self, role: str = DEFAULT_ROLE) -> RunResult:
        """Start the workers, again where that is needed, and wait for them.

        SignalException if this process is asked to end; RendezvousError if the agents do not meet.
        In all cases no worker is left over.
        """
        group = self.get_worker_group(role)
        handler = group.spec.rdzv_handler
        with _signals_raise():
            try:
                return self._run(group)
            except RendezvousGracefulExitError:
                return RunResult(WorkerState.SUCCEEDED)
            except SignalException as error:
                self._end_workers(error.sigval)
                with contextlib.suppress(RendezvousError):
                    handler.leave()
                raise
            finally:
                self._end_workers()

    # ---- The life of a group ----

    def _run(self, group: WorkerGroup) -> RunResult:
        handler = group.spec.rdzv_handler
        while True:
            self._meet(group)
            self._start_workers(group)
            result = self._watch(group)
            self._end_workers()
            if result is None:  # machines came or went
                continue
            if not result.is_failed():
                if self._all_have_succeeded(group):
                    return result
                continue
            self._restarts += 1
            if self._restarts > group.spec.max_restarts:
                with contextlib.suppress(RendezvousError):
                    handler.set_closed()
                return result
            first = min(result.failures.values(), key=lambda each: each.timestamp, default=None)
            what = "workers of another machine failed" if first is None else first.message
            _logger.warning(
                "starting the workers anew, %d of %d times: %s",
                self._restarts,
                group.spec.max_restarts,
                what if isinstance(what, str) else what.get("message"),
            )

    def _meet(self, group: WorkerGroup) -> None:
        """Meet the other agents, and number the workers."""
        spec = group.spec
        found = spec.rdzv_handler.next_rendezvous()
        group.store, group.group_rank = found.store, found.rank
        group.group_world_size = found.world_size
        group.master_addr = spec.master_addr or found.bootstrap_store_info.master_addr
        group.master_port = spec.master_port or found.bootstrap_store_info.master_port
        mine = [spec.role, spec.local_world_size, self._restarts]
        found.store.set(f"agent/{found.rank}", json.dumps(mine))
        try:
            keys = [f"agent/{rank}" for rank in range(found.world_size)]
            roles = [json.loads(each) for each in found.store.multi_get(keys)]
        except DistStoreError:
            return self._meet(group)  # an agent has gone since
        self._restarts = max(restarts for _, _, restarts in roles)
        before = roles[: found.rank]
        first = sum(count for _, count, _ in before)
        first_of_role = sum(count for role, count, _ in before if role == spec.role)
        for worker in group.workers:
            worker.global_rank = first + worker.local_rank
            worker.world_size = sum(count for _, count, _ in roles)
            worker.role_rank = first_of_role + worker.local_rank
            worker.role_world_size = sum(count for role, count, _ in roles if role == spec.role)
        group.state = WorkerState.INIT

    def _environment(self, group: WorkerGroup, local_rank: int) -> Dict[str, str]:
        spec, worker = group.spec, group.workers[local_rank]
        handler = spec.rdzv_handler
        own_store = getattr(group.store, "prefix", "")
        said: Dict[str, Any] = {
            "LOCAL_RANK": local_rank,
            "RANK": worker.global_rank,
            "GROUP_RANK": group.group_rank,
            "ROLE_RANK": worker.role_rank,
            "ROLE_NAME": spec.role,
            "LOCAL_WORLD_SIZE": spec.local_world_size,
            "WORLD_SIZE": worker.world_size,
            "GROUP_WORLD_SIZE": group.group_world_size,
            "ROLE_WORLD_SIZE": worker.role_world_size,
            "MASTER_ADDR": group.master_addr,
            "MASTER_PORT": group.master_port,
            "TORCHELASTIC_RESTART_COUNT": self._restarts,
            "TORCHELASTIC_MAX_RESTARTS": spec.max_restarts,
            "TORCHELASTIC_RUN_ID": handler.get_run_id(),
            "TORCHELASTIC_USE_AGENT_STORE": handler.use_agent_store,
            # The workers of each meeting have keys of their own.
            "TREADLE_STORE_PREFIX": f"{handler.get_run_id()}/{own_store}",
        }
        if "OMP_NUM_THREADS" in os.environ:
            said["OMP_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
        if spec.virtual_local_rank:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            devices = visible.split(",") if visible else [str(n) for n in range(local_rank + 1)]
            said.update(LOCAL_RANK=0, CUDA_VISIBLE_DEVICES=devices[local_rank])
        return {name: str(value) for name, value in said.items()}

    def _start_workers(self, group: WorkerGroup) -> None:
        spec = group.spec
        envs = {
            worker.local_rank: self._environment(group, worker.local_rank)
            for worker in group.workers
        }
        prefixes: Optional[Dict[int, str]] = None
        if self._prefix:
            host = socket.gethostname()
            prefixes = {
                rank: line_prefix(self._prefix, rank, env, host) for rank, env in envs.items()
            }
        args = {rank: tuple(macros.substitute(list(spec.args), str(rank))) for rank in envs}
        assert spec.entrypoint is not None
        self._context = start_processes(
            name=spec.role,
            entrypoint=spec.entrypoint,
            args=args,
            envs=envs,
            logs_specs=self._logs,
            log_line_prefixes=prefixes,
            start_method=self._start_method,
            numa_options=spec.numa_options,
            duplicate_stdout_filters=spec.duplicate_stdout_filters,
            duplicate_stderr_filters=spec.duplicate_stderr_filters,
        )
        for rank, pid in self._context.pids().items():
            group.workers[rank].id = pid
        group.state = WorkerState.HEALTHY
        events.record(self._event("START", group), spec.event_log_handler)

    def _watch(self, group: WorkerGroup) -> Optional[RunResult]:
        """Wait for the end of the workers. None if they have to start anew for a machine."""
        spec = group.spec
        assert self._context is not None
        ranks = {worker.local_rank: worker.global_rank for worker in group.workers}
        while True:
            found = self._context.wait(timeout=spec.monitor_interval, period=spec.monitor_interval)
            if found is not None:
                is_failed = found.is_failed()
                group.state = WorkerState.FAILED if is_failed else WorkerState.SUCCEEDED
                events.record(self._event(group.state.value, group), spec.event_log_handler)
                return RunResult(
                    group.state,
                    {ranks[local]: value for local, value in found.return_values.items()},
                    {ranks[local]: failure for local, failure in found.failures.items()},
                )
            if spec.rdzv_handler.num_nodes_waiting() > 0:
                if spec.rdzv_handler.is_closed():
                    return RunResult(WorkerState.FAILED)
                _logger.warning("starting the workers anew: a machine has come or gone")
                return None
            if spec.rdzv_handler.is_closed():
                self._restarts = spec.max_restarts  # another agent has given up
                return RunResult(WorkerState.FAILED)

    def _all_have_succeeded(self, group: WorkerGroup) -> bool:
        """Wait for the workers of the other agents. False if they have to start anew."""
        handler = group.spec.rdzv_handler
        end = time.monotonic() + self._exit_seconds
        while True:
            try:
                if handler.finish():
                    handler.set_closed()
                    return True
                if handler.is_closed() or time.monotonic() >= end:
                    return True
                if handler.num_nodes_waiting() > 0:
                    return False
            except RendezvousConnectionError:
                return True  # the agent with the store saw that all have succeeded
            time.sleep(group.spec.monitor_interval)

    def _end_workers(self, by: signal.Signals = signal.SIGTERM) -> None:
        context, self._context = self._context, None
        if context is not None:
            with _signals_wait():
                context.close(by, self._shutdown_seconds)

    def _event(self, what: str, group: WorkerGroup) -> events.Event:
        spec = group.spec
        return events.Event(
            name=f"treadle.distributed.worker.{what}",
            source=events.EventSource.AGENT,
            metadata={
                "run_id": spec.rdzv_handler.get_run_id(),
                "group_rank": group.group_rank,
                "group_world_size": group.group_world_size,
                "role": spec.role,
                "restarts": self._restarts,
                "entry_point": spec.get_entrypoint_name(),
            },
        )


def _handled() -> List[signal.Signals]:
    names = os.environ.get("TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT")
    found = []
    for name in filter(None, (part.strip() for part in names.split(","))):
        if name not in signal.Signals.__members__:
            raise ValueError(f"expected names of signals, as in SIGTERM,SIGINT, got {names!r}")
        found.append(signal.Signals[name])
    return found


def _raise(number: int, frame: Any) -> None:
    what = signal.Signals(number)
    raise SignalException(f"process {os.getpid()} got {what.name}", what)


@contextlib.contextmanager
def _set(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals go to the main thread
        return
    before = {each: signal.signal(each, handler) for each in _handled()}
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old)


def _signals_raise() -> contextlib.AbstractContextManager:
    """While this lasts, a signal to end raises SignalException."""
    return _set(_raise)


def _signals_wait() -> contextlib.AbstractContextManager:
    """While this lasts, signals to end do nothing: workers are being ended."""
    return _set(lambda number, frame: None)


__all__ = ["LocalElasticAgent"]
