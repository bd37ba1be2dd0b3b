"""./dev fuzz: calls every operator with arguments that fit, that just do not, and that make no
sense.

The fuzzer is tests/fuzz; docs/fuzzing.md is about it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import os

import bazel
import environment
import tests
from ui import ROOT, run

# Options that go to the fuzzer as they are.
PASSED = ("calls", "seed", "first", "op", "sequences", "minutes", "workers", "replay", "hang")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calls", metavar="N", type=int, help="how many (default 50000)")
    parser.add_argument("--seed", metavar="S", type=int, help="which; drawn if not given")
    parser.add_argument("--first", metavar="N", type=int, help="the number of the first call")
    parser.add_argument("--op", metavar="NAME", help="one operator only")
    parser.add_argument(
        "--sequences", metavar="N", type=int,
        help="instead of calls: sequences of calls on tensors that share memory",
    )  # fmt: skip
    parser.add_argument("--minutes", metavar="M", type=float, help="stop after so long")
    parser.add_argument("--workers", metavar="N", type=int, help="processes (default: one a core)")
    parser.add_argument("--hang", metavar="S", type=float, help="seconds after which a call hangs")
    parser.add_argument("--replay", metavar="FILE", help="run the script of a finding again")
    parser.add_argument("--threads", metavar="SECONDS", type=float, help="the mix of threads")
    parser.add_argument(
        "--tsan", action="store_true", help="with the thread sanitizer: for --threads"
    )
    parser.add_argument("--asan", action="store_true", help="with the address and UB sanitizers")


def main(args: argparse.Namespace) -> int:
    environment.prepare()
    config = bazel.Config("asan" if args.asan else "tsan" if args.tsan else "")
    package = bazel.build_package(config)
    command = [str(environment.PYTHON), "-m", "fuzz"]
    if args.threads is not None:
        command += ["--threads", str(args.threads)]
    for name in PASSED:
        if (value := getattr(args, name)) is not None:
            command += [f"--{name}", str(value)]
    variables = tests.python_environment(config, package)
    variables["PYTHONPATH"] = os.pathsep.join([str(package), str(ROOT / "tests")])
    return run(command, env=variables)
