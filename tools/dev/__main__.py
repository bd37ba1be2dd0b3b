"""The commands of ./dev. Each does the set-up it needs and says what it does.

./dev demo            build the wheel, install it, train a network on handwritten digits
./dev test            C++, generator and Python tests
./dev fuzz            call every operator with hostile arguments
./dev build           build the package into build/python
./dev show add        what is generated for an operator
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import sys

import bazel
import bench
import coverage
import demo
import docs
import environment
import fuzz
import gpu
import libraries
import names
import oracle
import pythons
import shell
import show
import sources
import tests
from ui import DevError, say


def parser() -> argparse.ArgumentParser:
    """The command line."""
    main_parser = argparse.ArgumentParser(
        prog="./dev",
        description="Build, test and run Treadle. Each command does the set-up it needs.",
    )
    commands = main_parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("demo", help="build and install the wheel, train on handwritten digits")
    test = commands.add_parser("test", help="run the C++, generator and Python tests")
    tests.add_arguments(test)
    fuzz.add_arguments(
        commands.add_parser("fuzz", help="call every operator with hostile arguments")
    )
    build = commands.add_parser("build", help="build the Python package into build/python")
    build.add_argument("--wheel", action="store_true", help="pack the wheel too")
    build.add_argument(
        "--system-wheel",
        action="store_true",
        help="pack a wheel that carries no library of the system",
    )
    build.add_argument("--asan", action="store_true", help="with sanitizers: build/python-asan")
    build.add_argument(
        "--tsan", action="store_true", help="with the thread sanitizer: build/python-tsan"
    )
    bench.add_arguments(commands.add_parser("bench", help="run the benchmarks"))
    gpu.add_arguments(
        commands.add_parser("gpu", help="pack what a machine with a GPU needs to try CUDA")
    )
    pythons.add_arguments(
        commands.add_parser("pythons", help="build and try the wheel for each supported Python")
    )
    coverage.add_arguments(
        commands.add_parser("coverage", help="which of a list of PyTorch's names exist")
    )
    names.add_arguments(
        commands.add_parser("names", help="compare with the names of an installed PyTorch")
    )
    oracle.add_arguments(
        commands.add_parser("oracle", help="compare with the results of an installed PyTorch")
    )
    libraries.add_arguments(
        commands.add_parser("libraries", help="run libraries made for PyTorch, as installed")
    )
    commands.add_parser("docs", help="make the reference pages and the documentation site")
    commands.add_parser("format", help="format the sources")
    lint = commands.add_parser("lint", help="check the sources and their types")
    lint.add_argument("--tidy", action="store_true", help="with clang-tidy over core, too")
    shown = commands.add_parser("show", help="print what is generated for an operator")
    shown.add_argument("operator", metavar="OP", help="a name such as add or add.Tensor")
    shell.add_arguments(commands.add_parser("python", help="run Python with the built package"))
    commands.add_parser("help", help="print this page")
    return main_parser


def build_command(args: argparse.Namespace) -> int:
    """./dev build."""
    environment.prepare()
    config = bazel.Config("asan" if args.asan else "tsan" if args.tsan else "")
    package = bazel.build_package(config)
    say(f"the package is in {package}")
    if args.wheel:
        say(f"the wheel is {bazel.build_wheel()}")
        say(f"the wheel of the operators' tests is {bazel.build_wheel(bazel.TESTING_WHEEL)}")
    if args.system_wheel:
        say(f"the wheel for this system is {bazel.build_wheel(bazel.SYSTEM_WHEEL)}")
    return 0


def docs_command() -> int:
    """./dev docs."""
    environment.prepare()
    config = bazel.Config()
    package = bazel.build_package(config)
    problems = docs.build(package, tests.python_environment(config, package))
    for problem in problems:
        print(problem)
    if not problems:
        say(f"the site begins at {docs.SITE / 'index.html'}, its Markdown is in {docs.FOLDER}")
    return 1 if problems else 0


def main() -> int:
    arguments = sys.argv[1:]
    if arguments[:1] == ["python"]:
        return shell.main(arguments[1:])
    args = parser().parse_args(arguments)
    if args.command == "demo":
        return demo.main()
    if args.command == "test":
        return tests.main(args)
    if args.command == "build":
        return build_command(args)
    if args.command == "fuzz":
        return fuzz.main(args)
    if args.command == "names":
        return names.main(args)
    if args.command == "oracle":
        return oracle.main(args)
    if args.command == "coverage":
        return coverage.main(args)
    if args.command == "bench":
        return bench.main(args)
    if args.command == "gpu":
        return gpu.main(args)
    if args.command == "pythons":
        return pythons.main(args)
    if args.command == "libraries":
        return libraries.main(args)
    if args.command == "docs":
        return docs_command()
    if args.command == "format":
        return sources.format_tree()
    if args.command == "lint":
        return sources.lint(args.tidy)
    if args.command == "show":
        return show.main(args.operator)
    parser().print_help()
    return 0 if args.command == "help" else 2


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DevError as error:
        print(f"dev: {error}", file=sys.stderr)
        sys.exit(error.status)
    except KeyboardInterrupt:
        sys.exit(130)
