"""The text of functions and classes as Python's trees, with the places where it stands."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any, List, NamedTuple, Optional, Tuple

from treadle.jit._source_range import SourceRange, SourceRangeFactory


def get_source_lines_and_file(
    obj: Any, error_msg: Optional[str] = None
) -> Tuple[List[str], int, Optional[str]]:
    """(lines, number of the first, file) of a function, class or method. OSError where the text
    is not known, with `error_msg` behind; TypeError for what has none."""
    filename = inspect.getsourcefile(obj)
    try:
        lines, number = inspect.getsourcelines(obj)
    except OSError as error:
        more = f"; {error_msg}" if error_msg else ""
        raise OSError(f"expected an object whose source can be read, got {obj}{more}") from error
    return lines, number, filename


class SourceContext(SourceRangeFactory):
    """A text, and what is known of it where a tree is made of it."""

    def __init__(
        self,
        source: str,
        filename: Any,
        file_lineno: int,
        leading_whitespace_len: int,
        uses_true_division: bool = True,
        funcname: Optional[str] = None,
    ) -> None:
        super().__init__(source, filename, file_lineno, leading_whitespace_len)
        self.uses_true_division = uses_true_division
        self.funcname = funcname


make_source_context = SourceContext


def fake_range() -> SourceRange:
    """A place in no text."""
    return SourceContext("", None, 0, 0).make_raw_range(0, 1)


class ParsedDef(NamedTuple):
    """A function's text and tree."""

    ast: ast.Module
    ctx: SourceContext
    source: str
    filename: Optional[str]
    file_lineno: int


def parse_def(fn: Any) -> ParsedDef:
    """The tree of a function. RuntimeError where its text is not that of one function, as for a
    lambda."""
    lines, number, filename = get_source_lines_and_file(fn)
    source = "".join(lines)
    text = textwrap.dedent(source)
    try:
        tree = ast.parse(text)
        is_one = len(tree.body) == 1 and isinstance(tree.body[0], ast.FunctionDef)
    except SyntaxError:  # of a lambda, the middle of a statement
        is_one = False
    if not is_one:
        raise RuntimeError(f"expected the source of one function, got {filename}:{number}")
    context = SourceContext(text, filename, number, 0, True, getattr(fn, "__name__", None))
    return ParsedDef(tree, context, text, filename, number)
