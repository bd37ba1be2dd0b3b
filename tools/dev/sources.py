"""./dev format and ./dev lint: the layout of the sources, and rules that a program can check."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import checkers
import entries
import environment
import folders
import licence_lines
import tidy
from ui import ROOT, run_quietly, say, step

CPP = {".h", ".cc", ".cu", ".cuh"}
SCRIPTS = {".py", ".sh", ".bzl", ".bazel"}
TEXT = CPP | SCRIPTS | {".j2", ".yaml", ".md", ".txt"}
LINES, COLUMNS = 800, 100
MARKERS = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
# Data, or text whose lines cannot be broken.
LONG_LINES = {".md", ".yaml", ".txt", ".j2", ".bzl", ".bazel", ".sh"}
LONG_FILES = {"native_functions.yaml", "derivatives.yaml"}
# A mutex that a fork may leave locked, in code that a child may run (core/base/fork_safe_mutex.h).
# A line that says why no fork can is left alone.
MUTEX = re.compile(r"\bstd::(?:recursive_|shared_|timed_)?mutex\b(?!>)(?!.*fork)")
FORKED = ("core/", "aten/", "plugin/host/", "python_bindings/csrc/")
# A child has no GPU; tests do not fork.
NOT_FORKED = re.compile(r"^aten/backend/cuda/|^aten/ops/\w+/cuda/|^tests/|_test\.cc$|/testing_")
# A Python line's words to checkers are not measured.
PRAGMA = re.compile(r"  # (?:type: ignore|noqa).*$")
# Files that tests compare byte for byte: nobody edits them.
FROZEN = ("tests/codegen", "tests/data")


def files(suffixes: Optional[set[str]] = None) -> list[Path]:
    """The files of the tree that git tracks or would track; those with the suffixes, or all."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout.decode()
    paths = [ROOT / name for name in listing.split("\0") if name]
    chosen = {path for path in paths if suffixes is None or path.suffix in suffixes}
    return sorted(path for path in chosen if path.is_file())


def python_files() -> list[Path]:
    """The Python files that ruff lays out."""
    return [path for path in files({".py", ".pyi"}) if not is_golden(path)]


def is_golden(path: Path) -> bool:
    """Whether a file is compared with to the byte."""
    return is_frozen(path) and path.suffix not in SCRIPTS


def is_frozen(path: Path) -> bool:
    return str(path.relative_to(ROOT)).startswith(FROZEN)


def format_tree() -> int:
    """Rewrites the sources: licence lines, clang-format, ruff, no blanks at the ends of lines."""
    environment.prepare()
    environment.checkers()
    for path in files(licence_lines.SUFFIXES):
        if not is_golden(path):
            text = path.read_text()
            if (with_licence := licence_lines.stated(text, path.suffix)) != text:
                path.write_text(with_licence)
    cpp = [path for path in files(CPP) if not is_frozen(path)]
    if cpp:
        run_quietly(["clang-format", "-i", *map(str, cpp)], "clang-format")
    python = python_files()
    checkers.format_python(python)
    for path in files(TEXT):
        text = path.read_text()
        stripped = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
        if stripped != text and path.suffix != ".md" and not is_golden(path):
            path.write_text(stripped)
    say(f"formatted {len(cpp)} C++ files and {len(python)} Python files")
    return 0


def lint(with_tidy: bool = False) -> int:
    """Prints every breach of the rules; 1 if there are any."""
    problems = all_problems(with_tidy)
    for problem in problems:
        print(problem)
    say(f"{len(problems)} problem{'' if len(problems) == 1 else 's'}")
    return 1 if problems else 0


def folder_problems() -> list[str]:
    """The breaches of the rules of folders.py."""
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for path in files(CPP | {".hpp", ".py", ".pyi"})
    }
    names = [path.relative_to(ROOT).as_posix() for path in files()]
    return list(folders.problems(texts, names))


def entry_problems() -> list[str]:
    """The breaches of the rules of entries.py."""
    return list(entries.problems({name: (ROOT / name).read_text() for name in entries.READ}))


def all_problems(with_tidy: bool = False) -> list[str]:
    """Every breach of the rules; with `with_tidy` clang-tidy's, too, which take minutes."""
    environment.prepare()
    environment.checkers()
    with step("Rules of the sources"):
        problems = [problem for path in files(TEXT) for problem in check(path)]
        problems += [*folder_problems(), *entry_problems()]
    with step("clang-format and ruff"):
        problems += [*misformatted(), *checkers.ruff(python_files())]
    with step("Types of the Python code"):
        problems += checkers.mypy()
    if with_tidy:
        with step("clang-tidy"):
            problems += tidy.problems()
    return problems


def misformatted() -> Iterator[str]:
    """C++ files that clang-format would change."""
    cpp = [str(p) for p in files(CPP) if not is_frozen(p)]
    if not cpp:
        return
    result = subprocess.run(
        ["clang-format", "--dry-run", *cpp], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    seen = set()
    for line in result.stderr.splitlines():
        path, _, rest = line.partition(":")
        if "code should be clang-formatted" in rest and path not in seen:
            seen.add(path)
            number = rest.split(":")[0]
            yield f"{Path(path).relative_to(ROOT)}:{number}: not formatted; run ./dev format"


def check(path: Path) -> Iterator[str]:
    """The breaches in one file."""
    name = path.relative_to(ROOT)
    text = path.read_text()
    lines = text.splitlines()
    golden = is_frozen(path) and path.suffix not in SCRIPTS
    if len(lines) > LINES and path.name not in LONG_FILES and not golden and path.suffix != ".md":
        yield f"{name}: {len(lines)} lines; a file over {LINES} has two ideas"
    for number, line in enumerate(lines, 1):
        columns = len(PRAGMA.sub("", line)) if path.suffix == ".py" else len(line)
        if columns > COLUMNS and path.suffix not in LONG_LINES and not golden:
            yield f"{name}:{number}: {columns} columns, {COLUMNS} allowed"
        if MARKERS.search(line):
            yield f"{name}:{number}: unfinished work"
        if line != line.rstrip() and path.suffix != ".md" and not golden:
            yield f"{name}:{number}: blanks at the end of the line"
    if text and not text.endswith("\n") and not golden:
        yield f"{name}: no newline at the end"
    if path.suffix in CPP and lines and not golden and not lines[0].startswith(("//", "/*")):
        yield f"{name}:1: no comment that states the file's idea"
    if path.suffix in CPP and str(name).startswith(FORKED) and not NOT_FORKED.search(str(name)):
        for number, line in enumerate(lines, 1):
            if MUTEX.search(line):
                yield f"{name}:{number}: a mutex that a fork may leave locked; use ForkSafeMutex"
    licensed = path.suffix in licence_lines.SUFFIXES and not golden
    if licensed and not licence_lines.is_stated(text):
        yield f"{name}: no line {licence_lines.LICENCE}; run ./dev format"
    if path.suffix == ".py":
        yield from check_python(name, text)


def check_python(name: Path, text: str) -> Iterator[str]:
    """A docstring on the module; examples in docstrings that stay indented; imports in use."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield f"{name}:{error.lineno}: {error.msg}"
        return
    if tree.body and ast.get_docstring(tree) is None:
        yield f"{name}:1: no docstring that states the file's idea"
    yield from indented_docstrings(name, tree)
    if name.name == "__init__.py":
        return
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    # Annotations may be strings.
    strings = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    used |= set(re.findall(r"\w+", " ".join(s for s in strings if isinstance(s, str))))
    lines = text.splitlines()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Import, ast.ImportFrom)) or "noqa" in lines[node.lineno - 1]:
            continue
        if getattr(node, "module", "") == "__future__":
            continue
        for alias in node.names:
            bound = (alias.asname or alias.name).split(".")[0]
            if bound not in used and bound != "*" and alias.asname != alias.name:
                yield f"{name}:{node.lineno}: '{bound}' is imported and not used"


def indented_docstrings(name: Path, tree: ast.Module) -> Iterator[str]:
    """Docstrings in which only an example follows the first line: its indentation would be lost,
    since the lines after the first are all there is to measure it by.
    """
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) or not node.body:
            continue
        first = node.body[0]
        if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)):
            continue
        lines = str(first.value.value).splitlines()[1:]
        margins = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
        if margins and min(margins) > first.col_offset:
            yield f"{name}:{first.lineno}: an example alone; put a line before it"
