"""Questions to the library from the command line.

python -m treadle explain add      what an operator is, and where each part of it is written
python -m treadle ops              every operator with its dtypes on each device
"""

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
    commands.add_parser("ops", help="every operator with its dtypes on each device")
    args = parser.parse_args(argv)

    from treadle import _explain

    try:
        print(_explain.operators_table() if args.command == "ops" else _explain.describe(args.name))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # `... | head`
        sys.stderr.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
