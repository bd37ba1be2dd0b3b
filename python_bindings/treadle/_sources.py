"""The text of functions and classes as Python's trees, with the places where it stands, and errors
that show them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any, List, NamedTuple, Optional, Tuple


class SourceRange:
    """The characters from `start` to before `end` of a text."""

    def __init__(self, factory: "SourceRangeFactory", start: int, end: int) -> None:
        self._factory, self.start, self.end = factory, start, end

    def highlight(self) -> str:
        """The file and line, and the text with the place marked below it."""
        return self._factory._shown(self.start, self.end)

    def __str__(self) -> str:
        return f"SourceRange at:\n{self.highlight()}"


class SourceRangeFactory:
    """Makes the places of one text, whose lines lost some white space before them."""

    def __init__(
        self, text: str, filename: Any, file_lineno: int, leading_whitespace_chars: int
    ) -> None:
        self.source = text
        self.filename, self.file_lineno = filename, file_lineno
        self.leading_whitespace_len = leading_whitespace_chars
        self._begins: List[int] = [0]
        for line in text.split("\n"):
            self._begins.append(self._begins[-1] + len(line) + 1)

    def make_range(self, line: int, start_col: int, end_col: int) -> SourceRange:
        """A place in a line, which are counted from 1, by columns of the file."""
        begin = self._begins[line - 1] - self.leading_whitespace_len
        return SourceRange(self, begin + start_col, begin + end_col)

    def make_raw_range(self, start: int, end: int) -> SourceRange:
        """A place by its characters."""
        return SourceRange(self, start, end)

    def _shown(self, start: int, end: int) -> str:
        index = max(i for i, begin in enumerate(self._begins[:-1]) if begin <= max(start, 0))
        begin = self._begins[index]
        line = self.source.split("\n")[index]
        width = max(min(end, begin + len(line)) - start, 1)
        mark = " " * (start - begin) + "~" * width
        where = f'  File "{self.filename}", line {self.file_lineno + index}\n' if (
            self.filename
        ) else ""  # fmt: skip
        return f"{where}{line}\n{mark} <--- HERE\n"


class ErrorReport:
    """The lines of an error that show its place."""

    def __init__(self, place: SourceRange) -> None:
        self._place = place

    def what(self) -> str:
        """The text."""
        return f"\n{self._place.highlight()}"


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
