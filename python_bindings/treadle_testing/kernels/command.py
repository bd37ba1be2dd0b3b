"""The command `python -m treadle check-kernel`."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import sys

from .checker import Checker
from .judge import ULPS
from .line import parse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument(
        "operator", help="gather, my_ops::rotary, or an entry: my_ops.yaml:squareplus"
    )
    parser.add_argument(
        "kernel",
        nargs="?",
        default="",
        help="FILE.py:NAME, MODULE:NAME, FILE.so, FILE.cc:NAME or tvm_ffi:FILE.so:NAME; without "
        "one, the operator's own kernels",
    )
    parser.add_argument(
        "--line", action="append", default=[], help="check this line only, as a report prints it"
    )
    parser.add_argument(
        "--sample",
        action="append",
        default=[],
        help="a line to vary, in place of the samples of the operator's tests",
    )
    parser.add_argument("--dtype", action="append", default=[], help="by default all declared")
    parser.add_argument("--seconds", type=float, default=50, help="at most (default: 50)")
    parser.add_argument("--ulp", type=float, default=ULPS, help=f"largest error (default: {ULPS})")
    parser.add_argument("--first", action="store_true", help="end at the first finding")
    parser.add_argument("--json", action="store_true", help="the report for programs")


def run(args: argparse.Namespace) -> int:
    """Checks a kernel and prints the report; 1 where there are findings, 2 where the check cannot
    begin."""
    try:
        for line in [*args.line, *args.sample]:
            parse(line)
        with Checker(args.ulp) as checker:
            report = checker.check(
                args.operator,
                args.kernel,
                seconds=args.seconds,
                lines=args.line or args.sample,
                only=bool(args.line),
                dtypes=args.dtype,
                first=args.first,
            )
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    print(report.json() if args.json else report.text())
    return 1 if report.findings else 0
