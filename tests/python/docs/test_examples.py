"""Every program in examples/ reaches what it says it reaches; those beside each other there run
with `import torch` alone, those in examples/fusion/ show what is Treadle's own.

A program says so in its docstring, in a line that begins

    Reaches: accuracy >= 0.95 (small: >= 0.9)

and prints the figure as its last line, `accuracy 0.9712`. The programs are found in the folder;
here they run with --small. docs/examples.md has a row for each. The programs of fusion also say
whether the bits are those without it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ast
import operator
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import treadle
from source_tree import ROOT

EXAMPLES = ROOT / "examples"
OF_TORCH = sorted(EXAMPLES.glob("*.py"))
OF_FUSION = sorted(EXAMPLES.glob("fusion/[!_]*.py"))
PROGRAMS = OF_TORCH + OF_FUSION
PAGE = ROOT / "docs" / "examples.md"
REACHES = re.compile(r"^Reaches: ([\w ]+) (<=|>=) ([\d.]+) \(small: \2 ([\d.]+)\)", re.MULTILINE)
COMPARISONS = {"<=": operator.le, ">=": operator.ge}
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(Path(treadle.__file__).parents[1]),
    # Tests run side by side already.
    "OMP_NUM_THREADS": "1",
}
every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)


class Figure(NamedTuple):
    """The last line that a program prints, and where its number is to be."""

    name: str
    comparison: str
    full: str
    small: str


def _reaches(program: Path) -> Figure:
    docstring = ast.get_docstring(ast.parse(program.read_text())) or ""
    found = REACHES.search(docstring)
    assert found, f"{program.name}: no line `Reaches: NAME >= NUMBER (small: >= NUMBER)`"
    return Figure(*found.groups())


def _run(folder: Path, program: Path, *arguments: str) -> list[str]:
    """The lines that a program prints with --small."""
    done = subprocess.run(
        [sys.executable, "-m", "treadle.run", str(program), "--small", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_there_are_programs() -> None:
    assert OF_TORCH and OF_FUSION


@pytest.mark.parametrize("program", OF_TORCH, ids=lambda path: path.stem)
def test_says_torch(program: Path) -> None:
    """Nothing in it is for Treadle."""
    imported = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.Import):
            imported.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module)
    packages = {name.split(".")[0] for name in imported}
    assert "torch" in packages
    assert "treadle" not in packages


@every_program
def test_has_a_row_in_the_page(program: Path) -> None:
    name, comparison, full, small = _reaches(program)
    link = f"(../examples/{program.relative_to(EXAMPLES)})"
    rows = [row for row in PAGE.read_text().splitlines() if link in row]
    assert len(rows) == 1
    assert f"| {name} {comparison} {full} | {comparison} {small} |" in rows[0]


@pytest.mark.slow
@every_program
def test_reaches_what_it_states(program: Path, tmp_path: Path) -> None:
    figure = _reaches(program)
    *lines, last = _run(tmp_path, program)
    assert not any(line.endswith("with fusion and without: False") for line in lines)
    name, _, value = last.rpartition(" ")
    assert name == figure.name
    assert COMPARISONS[figure.comparison](float(value), float(figure.small)), last


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    program = EXAMPLES / "resnet.py"
    whole = _run(tmp_path, program)
    begun = _run(tmp_path, program, "--checkpoint", "stopped.pt", "--stop", "2")
    resumed = _run(tmp_path, program, "--checkpoint", "stopped.pt", "--resume")
    assert begun[:-1] + resumed == whole
