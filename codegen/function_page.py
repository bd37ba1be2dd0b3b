"""docs/functions-of-expressions.md: the tables of functions and operators of elements.

    python -m codegen.function_page --model opmodel.json --page docs/functions-of-expressions.md

writes them anew between the two comments that mark their place.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from pathlib import Path
from typing import Iterable, Sequence

from .diagnostics import CodegenError
from .model.dtypes import DtypeKind, Row
from .model.entry import Model
from .model.functions import Gives, ScalarFunction
from .model.load import load

BEGIN = "<!-- The tables are from aten/scalar/functions.yaml, by codegen/function_page.py. -->"
END = "<!-- End of the tables. -->"
_CLASSES = {
    "bool": (DtypeKind.BOOL,),
    "integers": (DtypeKind.UNSIGNED, DtypeKind.SIGNED),
    "floats": (DtypeKind.FLOATING,),
    "complex": (DtypeKind.COMPLEX,),
}


def dtypes_in_words(row: Row, model: Model) -> str:
    """`bool, integers, floats`; dtypes by name where a class is not there as a whole."""
    words, left = [], set(row)
    for word, kinds in _CLASSES.items():
        members = {dtype for dtype in model.dtypes if dtype.kind in kinds}
        if members <= left:
            words.append(word)
            left -= members
    words += [dtype.name for dtype in row if dtype in left]
    return "all" if len(words) == len(_CLASSES) and not left else ", ".join(words)


def _meaning(function: ScalarFunction, model: Model) -> str:
    parts = [function.doc]
    if function.function is not None:
        parts.append(f"`{function.function}`")
    if function.gives is Gives.TRUTH:
        parts.append("a truth value")
    if function.throws:
        of = " and ".join(dtypes_in_words(function.throws, model).rsplit(", ", 1))
        zero = f" if {function.throws_if_zero} is 0" if function.throws_if_zero else ""
        parts.append(f"for {of}, RuntimeError{zero}")
    return "; ".join(part for part in parts if part).replace("|", "\\|")


def _table(functions: Iterable[ScalarFunction], model: Model) -> str:
    lines = ["| function | dtypes | meaning |", "| --- | --- | --- |"]
    for function in functions:
        text = function.text.replace("|", "\\|")
        of = dtypes_in_words(function.dtypes, model)
        lines.append(f"| `{text}` | {of} | {_meaning(function, model)} |")
    return "\n".join(lines)


def tables(model: Model) -> str:
    sections = groupby(model.scalar_functions, lambda function: function.section)
    return "\n\n".join(f"## {title}\n\n{_table(group, model)}" for title, group in sections)


def page_with(page: str, model: Model) -> str:
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise CodegenError(f"expected the lines '{BEGIN}' and '{END}' in the page, got others")
    return f"{before}{BEGIN}\n\n{tables(model)}\n\n{END}{after}"


def main(argv: Sequence[str]) -> int:
    """Exit status: 0, or 1 with what is wrong on standard error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--page", required=True, type=Path)
    args = parser.parse_args(argv)
    try:
        args.page.write_text(page_with(args.page.read_text(), load(args.model)))
    except CodegenError as error:
        sys.stderr.write(f"{args.page}: error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
