"""FileCheck: whether a text has what it should, in this order.

    FileCheck().check("linear").check_next("relu").check_not("softmax").run(text)

A check looks for its pattern behind what the one before found.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from typing import Any, List, NamedTuple, Tuple

_WORDS = {
    "CHECK": "check",
    "CHECK-NEXT": "next",
    "CHECK-SAME": "same",
    "CHECK-NOT": "not",
    "CHECK-DAG": "dag",
    "CHECK-REGEX": "regex",
}


class _Check(NamedTuple):
    kind: str
    pattern: str
    count: int = 1  # type: ignore[assignment]  # tuples have a method of the name
    exactly: bool = False


class FileCheck:
    """Checks of a text, made one by one and run with run()."""

    def __init__(self) -> None:
        self._checks: List[_Check] = []

    def _add(self, *given: Any) -> "FileCheck":
        self._checks.append(_Check(*given))
        return self

    def check(self, text: str) -> "FileCheck":
        """It comes next, anywhere."""
        return self._add("check", text)

    def check_next(self, text: str) -> "FileCheck":
        """It is on the next line."""
        return self._add("next", text)

    def check_same(self, text: str) -> "FileCheck":
        """It comes next on the same line."""
        return self._add("same", text)

    def check_not(self, text: str) -> "FileCheck":
        """It is not between what is found before and after."""
        return self._add("not", text)

    def check_dag(self, text: str) -> "FileCheck":
        """It comes next, with the other such checks beside this one in any order."""
        return self._add("dag", text)

    def check_regex(self, text: str) -> "FileCheck":
        """The regular expression matches next."""
        return self._add("regex", text)

    def check_count(self, str: str, count: int, exactly: bool = False) -> "FileCheck":  # noqa: A002
        """It comes next so many times; with `exactly` not once more before the next check."""
        return self._add("count", str, count, exactly)

    def check_source_highlighted(self, text: str) -> "FileCheck":
        """It comes next, with a line below it that marks it by ~."""
        return self._add("highlighted", text)

    def run(self, *given: str) -> None:
        """Look at the text; the first of two is text with lines `# CHECK: ...` that say the checks.
        RuntimeError for what does not fit, and without checks."""
        checks = list(self._checks)
        for text in given[:-1]:
            for word, count, pattern in re.findall(
                r"^\s*#\s*(CHECK(?:-[A-Z]+)*)(?:-(\d+))?: ?(.*)$", text, re.M
            ):
                if word.startswith("CHECK-COUNT"):
                    checks.append(_Check("count", pattern, int(count), word.endswith("EXACTLY")))
                else:
                    checks.append(_Check(_WORDS[word], pattern))
        if not checks:
            raise RuntimeError("FileCheck: expected checks, got none")
        _run(checks, given[-1])


def _run(checks: List[_Check], text: str) -> None:
    position = 0
    forbidden: List[_Check] = []
    place = 0
    while place < len(checks):
        check = checks[place]
        place += 1
        if check.kind == "not":
            forbidden.append(check)
            continue
        group = [check]
        while check.kind == "dag" and place < len(checks) and checks[place].kind == "dag":
            group.append(checks[place])
            place += 1
        spans = [_found(text, position, c) for c in group]
        begin, end = min(s[0] for s in spans), max(s[1] for s in spans)
        _refuse(forbidden, text, position, begin)
        forbidden = [c._replace(kind="count") for c in group if c.exactly]
        position = end
    _refuse(forbidden, text, position, len(text))


def _refuse(forbidden: List[_Check], text: str, begin: int, end: int) -> None:
    for check in forbidden:
        place = text.find(check.pattern, begin, end)
        if place >= 0:
            raise RuntimeError(
                f"FileCheck: expected no {check.pattern!r} ({check.kind}), got it at {place} in\n"
                f"{text[:400]}"
            )


def _missing(text: str, check: _Check, more: str = "") -> RuntimeError:
    return RuntimeError(
        f"FileCheck: expected {check.pattern!r} ({check.kind}){more}, got none in\n{text[:400]}"
    )


def _found(text: str, begin: int, check: _Check) -> Tuple[int, int]:
    """Where a pattern is: from the first to behind the last time."""
    if check.kind == "regex":
        match = re.compile(check.pattern).search(text, begin)
        if match is None:
            raise _missing(text, check)
        return match.span()
    first = -1
    for _ in range(check.count):
        start = text.find(check.pattern, begin)
        if start < 0:
            more = f" {check.count} times" if check.count > 1 else ""
            raise _missing(text, check, more)
        breaks = text.count("\n", begin, start)
        if check.kind in ("next", "same") and breaks != (check.kind == "next"):
            line = "the next line" if check.kind == "next" else "the same line"
            raise RuntimeError(
                f"FileCheck: expected {check.pattern!r} on {line}, got it {breaks} lines on in\n"
                f"{text[:400]}"
            )
        first = start if first < 0 else first
        begin = start + len(check.pattern)
    if check.kind == "highlighted":
        start = text.rfind("\n", 0, first) + 1
        below = text.find("\n", begin)
        mark = text[below + 1 :].split("\n", 1)[0] if below >= 0 else ""
        if "~" not in mark[first - start : first - start + len(check.pattern)]:
            raise _missing(text, check, " with ~ below it")
    return first, begin
