"""Errors in the files of a library or of the tree, with their places, as schemac prints them.

Example:

    ops.yaml:12: error: f returns nothing and writes nothing
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable


@dataclass(frozen=True)
class Place:
    file: str
    line: int
    column: int = 0  # 0: the line as a whole

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Diagnostic:
    place: Place
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.place}: error: {self.message}" + (f"; {self.hint}" if self.hint else "")


class CodegenError(Exception):
    """Errors in the files of a library, each with its place where it has one."""


def raise_if_any(diagnostics: Iterable[Diagnostic]) -> None:
    """Raises CodegenError with all of them, in the order of their places."""
    found = sorted(set(diagnostics), key=lambda d: (d.place.file, d.place.line, d.place.column))
    if found:
        raise CodegenError("\n".join(map(str, found)))
