"""./dev bench: every benchmark, C++ and Python, one after the other, or some of them.

A name chooses files; what follows it is passed on to them.

    ./dev bench models
    ./dev bench models --only vgg --all
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse

import bazel
import environment
from tests import python_environment
from ui import ROOT, DevError, run, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", default="", help="only files whose name contains this")
    parser.add_argument(
        "arguments", nargs=argparse.REMAINDER, help="what they are given; --help prints what"
    )


def main(args: argparse.Namespace) -> int:
    environment.prepare()
    config = bazel.Config()
    package = bazel.build_package(config)
    folder = ROOT / "benchmarks"
    chosen = [path for path in sorted(folder.iterdir()) if args.name in path.stem]
    programs = [path.stem for path in chosen if path.suffix == ".cc"]
    scripts = [path for path in chosen if path.suffix == ".py" and not path.stem.startswith("_")]
    if not programs and not scripts:
        raise DevError(f"no benchmark's name contains '{args.name}'")
    status = 0
    if programs:
        output = bazel.build(config, *[f"//benchmarks:{name}" for name in programs])
        for name in programs:
            say(f"benchmarks/{name}")
            status |= run([str(output / "benchmarks" / name), *args.arguments])
    if any(script.stem == "contract_cost" for script in scripts):
        bazel.build(config, "//benchmarks:contract_free.so")
    for script in scripts:
        say(f"benchmarks/{script.name}")
        variables = python_environment(config, package)
        status |= run([str(environment.PYTHON), str(script), *args.arguments], env=variables)
    return status
