"""Programs that check the Python sources, ruff and mypy; what they find, a line for each.

Their settings are in pyproject.toml. mypy reads the package as it is installed, with the stubs of
the operators, which the build generates.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import bazel
import environment
from ui import ROOT, DevError, merged, run_quietly

RUFF = str(environment.CHECKERS / "bin" / "ruff")
MYPY = str(environment.CHECKERS / "bin" / "mypy")
STUBS = "//generated:stubs_files"
# The package with its generated stubs.
TYPED = ROOT / "build" / "typed"
PACKAGE = ROOT / "python_bindings" / "treadle"
GENERATOR = "codegen"


def format_python(paths: Sequence[Path]) -> None:
    """Sorts imports and lays out Python files."""
    names = [str(path) for path in paths]
    run_quietly([RUFF, "check", "--select", "I", "--fix", "--quiet", *names], "ruff check")
    run_quietly([RUFF, "format", "--quiet", *names], "ruff format")


def ruff(paths: Sequence[Path]) -> Iterator[str]:
    """The lines that ruff would lay out otherwise, and breaches of its rules."""
    names = [str(path.relative_to(ROOT)) for path in paths]
    yield from unformatted(run_checker([RUFF, "format", "--check", "--force-exclude", *names]))
    for line in run_checker([RUFF, "check", "--quiet", "--output-format", "concise", *names]):
        if re.match(r"\S+:\d+:\d+: ", line):
            yield line


def unformatted(lines: Sequence[str]) -> Iterator[str]:
    """From the output of `ruff format --check`."""
    for line in lines:
        found = re.match(r"Would reformat: (.*)", line)
        if found:
            yield f"{found[1]}: not formatted; run ./dev format"


def mypy() -> Iterator[str]:
    """The problems that the type checker finds in the package, the generator and these tools."""
    output = bazel.build(bazel.Config(), STUBS)
    lay_out_typed(output / "generated" / "treadle" / "_operators.pyi")
    tools = sorted((ROOT / "tools" / "dev").glob("*.py"))
    modules = [part for tool in tools if tool.stem != "__main__" for part in ("-m", tool.stem)]
    command = [MYPY, "--python-executable", str(environment.PYTHON)]
    command += ["-p", PACKAGE.name, "-p", GENERATOR]
    path = os.pathsep.join([str(TYPED), str(ROOT / "tools" / "dev"), str(ROOT)])
    lines = run_checker([*command, *modules], {"MYPYPATH": path})
    for line in lines:
        if ": error:" in line:
            yield line.replace(f"{TYPED.relative_to(ROOT)}/", "python_bindings/")


def lay_out_typed(stubs: Path) -> None:
    """Makes build/typed/treadle the package's sources beside the generated stubs, by links."""
    folder = TYPED / PACKAGE.name
    folder.mkdir(parents=True, exist_ok=True)
    sources = [path for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    links = {path.name: path for path in [*sources, stubs]}
    for old in folder.iterdir():
        if old.name not in links or links[old.name] != Path(os.readlink(old)):
            old.unlink()
    for name, target in links.items():
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(target)


def run_checker(command: Sequence[str], variables: dict[str, str] | None = None) -> list[str]:
    """The lines that a checker prints; an error where it could not run at all (status 2)."""
    done = subprocess.run(
        list(command), cwd=ROOT, env=merged(variables), capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        raise DevError(f"{Path(command[0]).name} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.splitlines()
