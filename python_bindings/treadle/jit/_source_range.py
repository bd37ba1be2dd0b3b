"""Places in the text of a program, and errors that show them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List


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
    """What an error says of its place."""

    def __init__(self, place: SourceRange) -> None:
        self._place = place

    def what(self) -> str:
        """The text."""
        return f"\n{self._place.highlight()}"
