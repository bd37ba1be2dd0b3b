"""The options of treadle.distributed.run."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from argparse import REMAINDER, ArgumentParser
from typing import Any, List

from treadle.distributed.argparse_util import check_env, env

_DESCRIPTION = """Start a program in several processes, on one machine or on many: each has RANK,
LOCAL_RANK and WORLD_SIZE in its environment. Where one fails, all start anew, --max-restarts times.
Each option has its default in the environment, as PET_NNODES for --nnodes."""


def _texts(value: str) -> List[str]:
    """`a,b` as a list; `,,` stands for a comma."""
    return [part.replace("\0", ",") for part in value.replace(",,", "\0").split(",")]


def get_args_parser() -> ArgumentParser:
    """The parser of the options."""
    parser = ArgumentParser(prog="treadle-torchrun", description=_DESCRIPTION)

    def option(name: str, help: str, *short: str, action: Any = env, **more: Any) -> None:
        names = dict.fromkeys([name, name[:2] + name[2:].replace("-", "_")])
        parser.add_argument(*short, *names, action=action, help=help, **more)

    option("--nnodes", "machines: a number, or <least>:<most>", type=str, default="1:1")
    option("--nproc-per-node", "processes of each machine: a number, auto, cpu or gpu", default="1")
    option("--rdzv-backend", "how the machines meet: c10d or static", default="static")
    option("--rdzv-endpoint", "where they meet: <host>:<port>", default="")
    option("--rdzv-id", "the name of the run", default="none")
    option("--rdzv-conf", "settings of the meeting: <key>=<value>,...", default="")
    option(
        "--standalone",
        "one machine, which meets nobody: chooses the other --rdzv options",
        action=check_env,
    )
    option("--max-restarts", "how often the processes start anew", type=int, default=0)
    option("--monitor-interval", "seconds between looks at them", type=float, default=0.1)
    option(
        "--start-method",
        "how functions are started, with --run-path",
        default="spawn",
        choices=["spawn", "fork", "forkserver"],
    )
    option("--event-log-handler", "where events are recorded: null or console", default="null")
    option("--role", "a name for the processes", default="default")
    option("--module", "the program is a module, as in python -m", "-m", action=check_env)
    option("--no-python", "the program is no Python program", action=check_env)
    option(
        "--run-path",
        "run the script by runpy.run_path in processes started by --start-method",
        action=check_env,
    )
    option("--log-dir", "the folder of log files", default=None)
    option(
        "--redirects",
        "output to log files: 1 stdout, 2 stderr, 3 both; 0:1,1:2 for local ranks",
        "-r",
        default="0",
    )
    option("--tee", "output to log files and to the console, as in --redirects", "-t", default="0")
    option(
        "--log-line-prefix-template",
        "how a line on the console begins with --tee: ${role_name}, ${rank}, ${local_rank}, "
        "${hostname}",
        default="",
    )
    option("--local-ranks-filter", "the local ranks that the console shows: 0,2", default="")
    option(
        "--duplicate-stdout-filters",
        "write logged lines with one of these texts to one file",
        type=_texts,
        default=[],
    )
    option("--duplicate-stderr-filters", "the same of stderr", type=_texts, default=[])
    option(
        "--logs-specs",
        "the class that says where output goes, by its name among the entry points of the group "
        "torchrun.logs_specs; by default DefaultLogsSpecs",
        default=None,
    )
    option("--node-rank", "the number of this machine, for static", type=int, default=0)
    option("--master-addr", "the address of machine 0, for static", default="127.0.0.1")
    option("--master-port", "the port of machine 0, for static; 29500", type=int, default=None)
    option("--local-addr", "the address of this machine", default=None)
    option(
        "--signals-to-handle",
        "the signals that end the processes",
        default="SIGTERM,SIGINT,SIGHUP,SIGQUIT",
    )
    option(
        "--shutdown-timeout", "seconds in which they may end by themselves", type=int, default=None
    )
    option(
        "--virtual-local-rank",
        "LOCAL_RANK is 0 in each process, which sees one device",
        action=check_env,
    )
    option(
        "--as-torch",
        "run programs that import torch; the default if PyTorch is not installed",
        action=check_env,
    )
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=REMAINDER, help="its arguments")
    return parser


__all__ = ["get_args_parser"]
