"""Starts a program in several processes, on one machine or on many, and starts them anew when one
fails.

    python -m treadle.distributed.run --standalone --nproc-per-node 4 train.py --epochs 3
    python -m treadle.distributed.run --nnodes 2:4 --nproc-per-node 8 --max-restarts 3 \\
        --rdzv-backend c10d --rdzv-endpoint node0:29400 --rdzv-id run7 train.py

Each process has RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, which
init_process_group() reads. A program that imports torch runs on Treadle where PyTorch is not
installed, with --as-torch, or when this was started through treadle.run.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
import uuid
from argparse import Namespace
from importlib import metadata
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

from treadle import _names
from treadle.distributed._run_options import get_args_parser
from treadle.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException, Std
from treadle.distributed.elastic.multiprocessing.errors import ChildFailedError, record
from treadle.distributed.elastic.rendezvous.api import RendezvousError
from treadle.distributed.elastic.rendezvous.utils import _parse_rendezvous_config
from treadle.distributed.elastic.utils import macros
from treadle.distributed.elastic.utils.logging import get_logger
from treadle.distributed.errors import DistError
from treadle.distributed.launcher.api import LaunchConfig, elastic_launch

_logger = get_logger(__name__)


def parse_args(args: Optional[Sequence[str]]) -> Namespace:
    """The options of a command line, by default this process's."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes: str) -> Tuple[int, int]:
    """The least and the most machines of `2` or `1:4`. RuntimeError for other text."""
    try:
        numbers = [int(part) for part in nnodes.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2):
        raise RuntimeError(f"--nnodes: expected a number or <least>:<most>, got {nnodes!r}")
    return numbers[0], numbers[-1]


def determine_local_world_size(nproc_per_node: str) -> int:
    """How many processes `4`, `auto`, `cpu` or `gpu` stands for. ValueError for other text, and for
    devices that are not there."""
    try:
        return int(nproc_per_node)
    except ValueError:
        pass
    package = _names.package()
    if nproc_per_node == "auto" and not package.cuda.is_available():
        nproc_per_node = "cpu"
    if nproc_per_node == "cpu":
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if nproc_per_node in ("auto", "gpu"):
        if not package.cuda.is_available():
            raise ValueError("--nproc-per-node: expected CUDA devices for gpu, got none")
        return int(package.cuda.device_count())
    raise ValueError(
        f"--nproc-per-node: expected a number, auto, cpu or gpu, got {nproc_per_node!r}"
    )


def get_rdzv_endpoint(args: Namespace) -> str:
    """The address at which the machines meet."""
    if args.rdzv_backend == "static" and not args.rdzv_endpoint:
        host = f"[{args.master_addr}]" if args.master_addr.count(":") > 1 else args.master_addr
        return f"{host}:{args.master_port}"
    return str(args.rdzv_endpoint)


def get_use_env(args: Namespace) -> bool:
    """Whether a process has its number in the environment alone; else it is an argument too, as
    treadle.distributed.launch gives it without --use-env."""
    return bool(getattr(args, "use_env", True))


def _shown(text: str) -> Optional[set]:
    try:
        return {int(part) for part in text.split(",")} if text else None
    except ValueError:
        raise ValueError(
            f"--local-ranks-filter: expected numbers as in 0,2, got {text!r}"
        ) from None


_LOGS_GROUP = "torchrun.logs_specs"


def _logs_class(name: Optional[str]) -> Any:
    """The class that says where output goes. ValueError for a name that no package has."""
    if name is None:
        return DefaultLogsSpecs
    found = [entry for entry in metadata.entry_points(group=_LOGS_GROUP) if entry.name == name]
    if not found:
        raise ValueError(
            f"--logs-specs: expected the name of an entry point of {_LOGS_GROUP}, got {name!r}"
        )
    return found[0].load()


def _is_as_torch(args: Namespace) -> bool:
    """Whether `import torch` in the program is to give this package."""
    if getattr(args, "as_torch", False) or _names.spoken() != _names.PACKAGE:
        return True
    return importlib.util.find_spec("torch") is None


def _command(args: Namespace) -> Tuple[Union[Callable, str], List[str]]:
    """The command of each process, with the arguments before those of the program."""
    if args.run_path:
        return run_script_path, [args.training_script]
    if args.no_python:
        if args.module:
            raise ValueError("expected --no-python or --module, got both")
        return args.training_script, []
    before = ["-u"]
    if _is_as_torch(args):
        before += ["-m", "treadle.run"]
    if args.module:
        before += ["-m"]
    return os.environ.get("PYTHON_EXEC", sys.executable), [*before, args.training_script]


def config_from_args(args: Namespace) -> Tuple[LaunchConfig, Union[Callable, str], List[str]]:
    """How to start the processes, what they run, and its arguments. ValueError, RuntimeError for
    options that cannot be."""
    least, most = parse_min_max_nnodes(args.nnodes)
    if not 0 < least <= most:
        raise ValueError(f"--nnodes: expected 0 < least <= most, got {args.nnodes}")
    if args.max_restarts < 0:
        raise ValueError(f"--max-restarts: expected a number >= 0, got {args.max_restarts}")
    processes = determine_local_world_size(args.nproc_per_node)
    if processes > 1 and "OMP_NUM_THREADS" not in os.environ:
        _logger.warning("each process computes in one thread; OMP_NUM_THREADS sets another number")
        os.environ["OMP_NUM_THREADS"] = "1"
    settings: dict = _parse_rendezvous_config(args.rdzv_conf)
    if args.rdzv_backend == "static":
        settings["rank"] = args.node_rank
    entrypoint, arguments = _command(args)
    if not get_use_env(args):
        arguments.append(f"--local-rank={macros.local_rank}")
    config = LaunchConfig(
        min_nodes=least,
        max_nodes=most,
        nproc_per_node=processes,
        run_id=args.rdzv_id,
        role=args.role,
        rdzv_endpoint=get_rdzv_endpoint(args),
        rdzv_backend=args.rdzv_backend,
        rdzv_configs=settings,
        max_restarts=args.max_restarts,
        monitor_interval=args.monitor_interval,
        start_method=args.start_method,
        log_line_prefix_template=args.log_line_prefix_template
        or os.environ.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"),
        local_addr=args.local_addr,
        logs_specs=_logs_class(args.logs_specs)(
            log_dir=args.log_dir,
            redirects=Std.from_str(args.redirects),
            tee=Std.from_str(args.tee),
            local_ranks_filter=_shown(args.local_ranks_filter),
        ),
        event_log_handler=args.event_log_handler,
        signals_to_handle=args.signals_to_handle,
        duplicate_stdout_filters=args.duplicate_stdout_filters,
        duplicate_stderr_filters=args.duplicate_stderr_filters,
        virtual_local_rank=args.virtual_local_rank,
        shutdown_timeout=args.shutdown_timeout,
    )
    return config, entrypoint, [*arguments, *args.training_script_args]


def run_script_path(training_script: str, *training_script_args: str) -> None:
    """Run a script as the main program of this process."""
    sys.argv = [training_script, *training_script_args]
    runpy.run_path(training_script, run_name="__main__")


def run(args: Namespace) -> None:
    """Start the processes, and wait for them. ChildFailedError if they fail."""
    one_machine = args.rdzv_backend == "static" and not args.rdzv_endpoint
    one_machine = one_machine and args.master_port is None
    if args.standalone or (one_machine and parse_min_max_nnodes(args.nnodes)[1] == 1):
        args.rdzv_backend, args.rdzv_endpoint = "c10d", "localhost:0"
        args.rdzv_id = uuid.uuid4().hex
    if args.master_port is None:
        args.master_port = 29500
    config, entrypoint, arguments = config_from_args(args)
    elastic_launch(config, entrypoint)(*arguments)


@record
def main(args: Optional[Sequence[str]] = None) -> None:
    """Start the processes that a command line asks for. ChildFailedError if they fail."""
    run(parse_args(args))


def _as_command(do: Any = main) -> None:
    """main() for a shell: failures are said on stderr, without the lines of this program."""
    try:
        do()
    except SignalException as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(128 + error.sigval) from None
    except (ChildFailedError, RendezvousError, DistError, ValueError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(1) from None


__all__ = [
    "config_from_args",
    "determine_local_world_size",
    "get_args_parser",
    "get_rdzv_endpoint",
    "get_use_env",
    "main",
    "parse_args",
    "parse_min_max_nnodes",
    "run",
    "run_script_path",
]

if __name__ == "__main__":
    _as_command()
