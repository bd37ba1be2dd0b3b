"""Starting workers from a program: what treadle.distributed.run does from the command line.

config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=4, rdzv_backend="c10d",
                      rdzv_endpoint="localhost:0")
returned = elastic_launch(config, train)(steps)     # what train(steps) returned, by rank
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import secrets
import sys
import uuid
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Union

from treadle.distributed.elastic.agent.server.api import WorkerSpec
from treadle.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from treadle.distributed.elastic.multiprocessing.api import SignalException
from treadle.distributed.elastic.multiprocessing.errors import ChildFailedError
from treadle.distributed.elastic.multiprocessing.logs import DefaultLogsSpecs, LogsSpecs
from treadle.distributed.elastic.rendezvous.api import RendezvousParameters
from treadle.distributed.elastic.rendezvous.registry import get_rendezvous_handler
from treadle.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
from treadle.distributed.elastic.utils.logging import get_logger

Entrypoint = Union[Callable, str, None]
_logger = get_logger(__name__)
_ONE_MACHINE = ("localhost", "127.0.0.1", "::1")


@dataclass
class LaunchConfig:
    """How to start workers: `nproc_per_node` on each of `min_nodes` to `max_nodes` machines, whose
    agents meet at `rdzv_endpoint`; see treadle.distributed.run for the others.

    `rdzv_timeout` is the older place of the setting `timeout` of `rdzv_configs`. Times are in
    seconds.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Optional[LogsSpecs] = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "c10d"
    rdzv_configs: Dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: Optional[str] = None
    metrics_cfg: Dict[str, str] = field(default_factory=dict)
    local_addr: Optional[str] = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: Optional[List[str]] = None
    duplicate_stderr_filters: Optional[List[str]] = None
    virtual_local_rank: bool = False
    shutdown_timeout: Optional[float] = None

    def __post_init__(self) -> None:
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.shutdown_timeout is None:
            self.shutdown_timeout = float(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30"))
        if self.shutdown_timeout < 0:
            raise ValueError(
                f"LaunchConfig: expected shutdown_timeout >= 0, got {self.shutdown_timeout}"
            )


class elastic_launch:  # noqa: N801
    """Calling it with arguments runs `entrypoint` with them in all workers of this machine: a
    function, which returns what each returned, by rank; or the name of a program.

    ChildFailedError if workers fail more often than `config.max_restarts`; SignalException if this
    process is asked to end; RendezvousError if the agents do not meet.
    """

    def __init__(self, config: LaunchConfig, entrypoint: Entrypoint) -> None:
        self._config = config
        self._entrypoint = entrypoint

    def __call__(self, *args: Any) -> Dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))


def _name_of(entrypoint: Entrypoint, args: List[Any]) -> str:
    """The function or the script, as messages name it."""
    if not isinstance(entrypoint, str):
        return str(getattr(entrypoint, "__name__", entrypoint))
    if entrypoint == sys.executable:
        words = (str(arg) for arg in args if not str(arg).startswith("-"))
        return next((word for word in words if word != "treadle.run"), entrypoint)
    return entrypoint


def _keep_to_itself(config: LaunchConfig) -> None:
    """A run on one machine has a secret of its own, unless it was given one: no other process can
    reach its store."""
    host, port = parse_rendezvous_endpoint(config.rdzv_endpoint, -1)
    if config.max_nodes == 1 and host in _ONE_MACHINE and port == 0:
        os.environ.setdefault("TREADLE_STORE_SECRET", secrets.token_hex(32))


def launch_agent(config: LaunchConfig, entrypoint: Entrypoint, args: List[Any]) -> Dict[int, Any]:
    """Run a function or a program in all workers of this machine: see elastic_launch."""
    if config.metrics_cfg:
        raise ValueError(
            f"LaunchConfig: expected no metrics_cfg, as agents measure nothing, got "
            f"{config.metrics_cfg}"
        )
    if not config.run_id:
        config.run_id = uuid.uuid4().hex
    assert config.logs_specs is not None and config.shutdown_timeout is not None
    before = {name: os.environ.get(name) for name in _SET}
    os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"] = config.signals_to_handle
    _keep_to_itself(config)
    name = _name_of(entrypoint, args)
    _logger.info("starting %s with %s", name, config)
    parameters = RendezvousParameters(
        config.rdzv_backend,
        config.rdzv_endpoint,
        config.run_id,
        config.min_nodes,
        config.max_nodes,
        config.local_addr,
        **config.rdzv_configs,
    )
    try:
        handler = get_rendezvous_handler(parameters)
        ends_run, failed = True, True
        try:
            spec = WorkerSpec(
                role=config.role,
                local_world_size=config.nproc_per_node,
                entrypoint=entrypoint,
                args=tuple(args),
                rdzv_handler=handler,
                max_restarts=config.max_restarts,
                monitor_interval=config.monitor_interval,
                local_addr=config.local_addr,
                event_log_handler=config.event_log_handler,
                numa_options=config.numa_options,
                duplicate_stdout_filters=config.duplicate_stdout_filters,
                duplicate_stderr_filters=config.duplicate_stderr_filters,
                virtual_local_rank=config.virtual_local_rank,
            )
            agent = LocalElasticAgent(
                spec,
                config.logs_specs,
                config.start_method,
                log_line_prefix_template=config.log_line_prefix_template,
                shutdown_timeout=config.shutdown_timeout,
            )
            result = agent.run(config.role)
            failed = result.is_failed()
        except SignalException:
            ends_run = False  # the other machines go on
            raise
        finally:
            if ends_run and failed:
                _close(handler)
            handler.shutdown()
            if isinstance(config.logs_specs, DefaultLogsSpecs):
                config.logs_specs._end(failed)
        if failed:
            raise ChildFailedError(name, result.failures)
        return result.return_values
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value


_SET = ("TORCHELASTIC_SIGNALS_TO_HANDLE", "TREADLE_STORE_SECRET")


def _close(handler: Any) -> None:
    try:
        handler.set_closed()
    except Exception:
        _logger.info("the other agents cannot be told that the run has ended", exc_info=True)


__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
