"""./dev python: Python with the package that was just built.

Example:

    ./dev python -c "import treadle; print(treadle.ones(2))"
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse

import bazel
import environment
from tests import python_environment
from ui import run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what Python is given")


def main(arguments: list[str]) -> int:
    environment.prepare()
    config = bazel.Config()
    package = bazel.build_package(config)
    return run([str(environment.PYTHON), *arguments], env=python_environment(config, package))
