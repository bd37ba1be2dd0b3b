"""Generates a library of operators outside of Treadle.

    python -m treadle.codegen my_ops.yaml --derivatives d.yaml --out gen/ --name my_ops

The entries of my_ops.yaml are written as those of Treadle's native_functions.yaml. `gen/my_ops/`
then holds the C++ code, the Python package, stubs and the model; `gen/docs/` the reference pages.
The last step is to compile the sources together with the kernels: treadle.utils.cpp_extension does
it, or a compiler with the options that `python -m treadle.utils.cpp_extension` prints.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def main(argv: list[str]) -> int:
    """Exit status: 0, or 1 with what is wrong on standard error."""
    parser = argparse.ArgumentParser(
        prog="python -m treadle.codegen",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("functions", help="the YAML file of the operators")
    parser.add_argument("--derivatives", help="the YAML file of their derivatives")
    parser.add_argument("--out", required=True, help="the folder to write to")
    parser.add_argument("--name", help="of the library; by default that of the YAML file")
    parser.add_argument("--shards", type=int, default=1, help="C++ files of each kind (default: 1)")
    args = parser.parse_args(argv)
    try:
        from .outside import CodegenError, generate
    except ImportError as error:
        sys.stderr.write(f"{error}\n")
        return 1

    name = args.name or Path(args.functions).stem
    try:
        generate(args.functions, args.derivatives, name=name, out=args.out, shards=args.shards)
    except CodegenError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
