"""Questions to the library from the command line.

python -m treadle explain add      what an operator is, and where each part of it is written
python -m treadle ops --table      every operator with its dtypes on each device
python -m treadle ops --count      how many operators there are, and what each has
python -m treadle check-kernel relu kernels.py:relu    what is wrong with a kernel
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import sys
from typing import Optional, Sequence


def main(argv: Optional[Sequence[str]] = None) -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m treadle", description="Questions to the library."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    explain = commands.add_parser(
        "explain", help="what an operator is, and where each part of it is written"
    )
    explain.add_argument("name", help="add, add_, add.Tensor, aten::add.Tensor")
    ops = commands.add_parser("ops", help="every operator with its dtypes on each device")
    what = ops.add_mutually_exclusive_group()
    what.add_argument("--table", action="store_true", help="operator x dtype x device (default)")
    what.add_argument("--count", action="store_true", help="how many, and what each of them has")
    form = ops.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="the table for a page")
    form.add_argument("--json", action="store_true", help="the table for programs")
    check = commands.add_parser("check-kernel", help="what is wrong with a kernel of an operator")
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["check-kernel"]:
        try:
            from treadle_testing.kernels import command
        except ImportError as error:
            print(
                f"check-kernel: expected the package treadle-testing, got none ({error}); install "
                "it with: pip install treadle-testing",
                file=sys.stderr,
            )
            return 2
        command.add_arguments(check)
        return command.run(parser.parse_args(given))
    args = parser.parse_args(given)

    try:
        print(_ops(args) if args.command == "ops" else _explain(args.name))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # `... | head`
        sys.stderr.close()
    return 0


def _ops(args: argparse.Namespace) -> str:
    from treadle._introspection import operator_table

    if args.count:
        return operator_table.count()
    if args.markdown:
        return operator_table.as_markdown()
    return operator_table.as_json() if args.json else operator_table.as_text()


def _explain(name: str) -> str:
    from treadle._introspection import explain

    return explain.describe(name)


if __name__ == "__main__":
    sys.exit(main())
