"""Errors of programs that TorchScript's front does not take, with the place."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle._sources import ErrorReport, SourceRange


class FrontendError(Exception):
    """An error in the source, and its place."""

    def __init__(self, source_range: SourceRange, msg: str) -> None:
        super().__init__(source_range, msg)
        self.source_range, self.msg = source_range, msg
        self.error_report = ErrorReport(source_range)

    def __str__(self) -> str:
        return f"{self.msg}:{self.error_report.what()}"


class NotSupportedError(FrontendError):
    """A use of something that is not taken."""


class UnsupportedNodeError(NotSupportedError):
    """A kind of expression or statement that is not taken."""

    def __init__(self, ctx: Any, offending_node: Any, reason: str = "") -> None:
        kind = type(offending_node)
        word = node_start_tokens.get(kind, " ")
        column = offending_node.col_offset
        place = ctx.make_range(offending_node.lineno, column, column + len(word))
        name = pretty_node_names.get(kind, kind.__name__)
        because = f", as {reason}" if reason else ""
        super().__init__(place, f"expected no {name}{because}")


class FrontendTypeError(FrontendError):
    """A type that is not taken."""


# Filled below: how a statement begins, and how it is called.
node_start_tokens: Any = {}
pretty_node_names: Any = {}


def _fill() -> None:
    import ast

    for name, word, called in (
        ("FunctionDef", "def", "function definitions"),
        ("For", "for", "for loops"),
        ("Delete", "del", "del statements"),
        ("ClassDef", "class", "class definitions"),
        ("With", "with", "with statements"),
        ("Raise", "raise", "raise statements"),
        ("Assert", "assert", "assertions"),
        ("Import", "import", "import statements"),
        ("ImportFrom", "from", "import statements"),
        ("Global", "global", "global variables"),
        ("Break", "break", "break statements"),
        ("Continue", "continue", "continue statements"),
        ("AsyncFunctionDef", "async def", "async function definitions"),
        ("AsyncFor", "async for", "async for loops"),
        ("AsyncWith", "async with", "async with statements"),
        ("Try", "try", "try blocks"),
        ("Nonlocal", "nonlocal", "nonlocal variables"),
    ):
        node_start_tokens[getattr(ast, name)] = word
        pretty_node_names[getattr(ast, name)] = called
    pretty_node_names[ast.AnnAssign] = "annotated assignments"


_fill()
