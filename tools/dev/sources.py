"""./dev format and ./dev lint: the layout of the sources, and rules that a program can check."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Optional

import environment
import folders
from ui import ROOT, run_quietly, say

CPP = {".h", ".cc", ".cu", ".cuh"}
SCRIPTS = {".py", ".sh", ".bzl", ".bazel"}
TEXT = CPP | SCRIPTS | {".j2", ".yaml", ".md", ".txt"}
LINES, COLUMNS = 800, 100
MARKERS = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
# What a line says to the tools does not count as its length.
PRAGMA = re.compile(r"  # (?:type: ignore|noqa)[^#]*$")
# Data, or text whose lines cannot be broken.
LONG_LINES = {".md", ".yaml", ".txt", ".j2", ".bzl", ".bazel", ".sh"}
LONG_FILES = {"native_functions.yaml", "derivatives.yaml"}
# A mutex that a fork may leave locked, in code that a child may run (core/base/fork_safe_mutex.h).
# A line that says why no fork can is left alone.
MUTEX = re.compile(r"\bstd::(?:recursive_|shared_|timed_)?mutex\b(?!>)(?!.*fork)")
FORKED = ("core/", "aten/", "plugin/host/", "python_bindings/csrc/")
# A child has no GPU; tests do not fork.
NOT_FORKED = re.compile(r"^aten/backend/cuda/|^aten/ops/\w+/cuda/|^tests/|_test\.cc$|/testing_")
# What tests compare with: nobody edits it.
FROZEN = ("tests/codegen", "tests/data")


def files(suffixes: Optional[set[str]] = None) -> list[Path]:
    """The files of the tree that git tracks or would track; those with the suffixes, or all."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, stdout=subprocess.PIPE, check=True,
    ).stdout.decode()
    paths = [ROOT / name for name in listing.split("\0") if name]
    chosen = {path for path in paths if suffixes is None or path.suffix in suffixes}
    return sorted(path for path in chosen if path.is_file())


def is_frozen(path: Path) -> bool:
    return str(path.relative_to(ROOT)).startswith(FROZEN)


def format_tree() -> int:
    """Rewrites the C++ sources with clang-format and strips blanks at line ends everywhere."""
    environment.system_packages()
    cpp = [path for path in files(CPP) if not is_frozen(path)]
    if cpp:
        run_quietly(["clang-format", "-i", *map(str, cpp)], "clang-format")
    for path in files(TEXT):
        text = path.read_text()
        tidy = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
        if tidy != text and path.suffix != ".md":
            path.write_text(tidy)
    say(f"formatted {len(cpp)} C++ files")
    return 0


def lint() -> int:
    """Prints every breach of the rules; 1 if there are any."""
    environment.system_packages()
    problems = [problem for path in files(TEXT) for problem in check(path)]
    problems += folder_problems()
    problems += list(misformatted())
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
        columns = len(PRAGMA.sub("", line))
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
    if path.suffix == ".py":
        yield from check_python(name, text)


def check_python(name: Path, text: str) -> Iterator[str]:
    """A docstring on the module, and imports that are used."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        yield f"{name}:{error.lineno}: {error.msg}"
        return
    if tree.body and ast.get_docstring(tree) is None:
        yield f"{name}:1: no docstring that states the file's idea"
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
