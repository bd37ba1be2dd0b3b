"""The older name of treadle.distributed.run. Without --use-env, each program gets its number as an
argument too: --local-rank=0.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from argparse import Namespace
from typing import Optional, Sequence

from treadle.distributed.run import _as_command, get_args_parser, run


def parse_args(args: Optional[Sequence[str]]) -> Namespace:
    """The options of a command line, by default this process's."""
    parser = get_args_parser()
    parser.add_argument(
        "--use-env",
        "--use_env",
        action="store_true",
        help="say the local rank in the environment alone",
    )
    return parser.parse_args(args)


def launch(args: Namespace) -> None:
    """Start the processes, and wait for them. ChildFailedError if they fail."""
    if args.no_python and not args.use_env:
        raise ValueError("--no-python: expected --use-env with it, got none")
    run(args)


def main(args: Optional[Sequence[str]] = None) -> None:
    """Start the processes that a command line asks for. ChildFailedError if they fail."""
    launch(parse_args(args))


__all__ = ["launch", "main", "parse_args"]

if __name__ == "__main__":
    _as_command(main)
