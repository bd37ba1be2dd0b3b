"""Runs the examples of a page of the documentation, as a session or as a program."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import doctest
import re
import textwrap
from pathlib import Path


def _blocks(page: Path) -> list[tuple[int, str, str]]:
    """(line, language, text) of the fenced blocks."""
    source = page.read_text()
    fences = re.finditer(r"^( *)```(\w*)\n(.*?)^\1```$", source, re.MULTILINE | re.DOTALL)
    return [(source.count("\n", 0, m.start()) + 2, m[2], textwrap.dedent(m[3])) for m in fences]


def run_examples(page: Path) -> None:
    """Run the examples of a page in the current folder."""
    names: dict = {"__name__": "__main__"}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for line, language, text in _blocks(page):
        if text.lstrip().startswith(">>>"):
            test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), line - 1)
            printed: list[str] = []
            runner.run(test, out=printed.append, clear_globs=False)
            names.update(test.globs)
            assert not runner.failures, "".join(printed)
        elif language == "python":
            exec(compile("\n" * (line - 1) + text, str(page), "exec"), names)
