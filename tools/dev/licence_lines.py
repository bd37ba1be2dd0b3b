"""The line that states the licence of a source, `SPDX-License-Identifier`, below what opens it.

    // The idea of the file.
    //
    // SPDX-License-Identifier: Apache-2.0

A file opens with its idea, so the line follows: at the end of the opening comment of C++, C and
shell sources, after the docstring of a Python module. `./dev format` adds it, `./dev lint` asks for
it.
"""

from __future__ import annotations

import ast
import re

LICENCE = "SPDX-License-Identifier: Apache-2.0"
CPP = {".h", ".cc", ".cu", ".cuh"}
SUFFIXES = CPP | {".c", ".py", ".sh"}


def is_stated(text: str) -> bool:
    """Whether a file states its licence, or is empty and so needs none."""
    return not text.strip() or LICENCE in text


def stated(text: str, suffix: str) -> str:
    """`text` with the line; a file that opens with no comment is left alone."""
    if is_stated(text):
        return text
    if suffix == ".py":
        return _after_docstring(text)
    if suffix == ".sh":
        return _after_comment(text, "#")
    if text.startswith("/*"):
        head, end, rest = text.partition("*/\n")
        return f"{head}{end}/* {LICENCE} */\n{rest}" if end else text
    return _after_comment(text, "//")


def _after_comment(text: str, mark: str) -> str:
    """At the end of the comment that opens the file, after an empty line of it."""
    opening = re.match(rf"(?:#![^\n]*\n)?(?:{mark}(?: [^\n]*)?\n)+", text)
    if not opening:
        return text
    separator = "" if mark == "#" else f"{mark}\n"
    return f"{opening[0]}{separator}{mark} {LICENCE}\n{text[opening.end() :]}"


def _after_docstring(text: str) -> str:
    """After the docstring of the module, between empty lines."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return text
    first = body[0] if body else None
    if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)):
        return text
    lines = text.splitlines(keepends=True)
    head, rest = "".join(lines[: first.end_lineno]), "".join(lines[first.end_lineno :])
    following = rest.lstrip("\n")
    return f"{head.rstrip()}\n\n# {LICENCE}\n" + (f"\n{following}" if following else "")
