"""The whole generated text of ten operators: a unary, a binary, a reduction, a factory, a view,
one with several outputs, two with autocast policies, one that writes a list, one on lists and its
in-place form.

A golden is what `./dev show NAME` would print if goldens/functions.yaml were the operators. A
refactor of the generator leaves all of them as they are; a change of what it generates shows in the
difference, and after reading that,

    pytest tests/codegen/test_goldens.py --update-goldens

writes them anew.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GOLDENS = HERE / "goldens"
OPERATORS = ("exp", "add", "sum", "zeros", "permute", "topk", "mm", "scale_all_") + (
    "_foreach_add",
    "_foreach_add_",
)
UPDATE = "pytest tests/codegen/test_goldens.py --update-goldens"


def _schemac() -> str:
    built = ROOT / "bazel-bin" / "codegen" / "schemac" / "schemac"
    return str(Path(os.environ.get("TREADLE_SCHEMAC") or built).resolve())


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("goldens") / "opmodel.json"
    # Run from the folder, so that the paths in the text are the same in every checkout.
    command = [_schemac(), "--functions", "functions.yaml", "--derivatives", "derivatives.yaml"]
    command += ["--scalars", str(ROOT / "aten" / "scalar" / "functions.yaml")]
    command += ["--formulas", str(ROOT / "autograd" / "formulas.yaml")]
    done = subprocess.run(
        [*command, "--out", str(out)], cwd=GOLDENS, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return out


def _generated(model: Path, operator: str) -> str:
    command = [sys.executable, "-m", "codegen.render", "--model", str(model)]
    done = subprocess.run(
        [*command, "--show", operator], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("operator", OPERATORS)
def test_golden(operator: str, model: Path, request: pytest.FixtureRequest) -> None:
    text = _generated(model, operator)
    golden = GOLDENS / f"{operator}.golden"
    if request.config.getoption("--update-goldens"):
        golden.write_text(text)
    assert golden.exists(), f"{golden.name} is not there; write it: {UPDATE}"
    known = golden.read_text()
    lines = difflib.unified_diff(
        known.splitlines(), text.splitlines(), golden.name, "generated now", lineterm=""
    )
    shown = "\n".join(list(lines)[:80])
    assert text == known, f"what is generated for {operator} has changed.\n{shown}\n{UPDATE}"


def test_the_text_does_not_depend_on_the_run(model: Path) -> None:
    for operator in OPERATORS:
        assert _generated(model, operator) == _generated(model, operator)


def test_every_section_says_where_it_comes_from(model: Path) -> None:
    for operator in OPERATORS:
        sections = re.split(r"^==== (\S+) ====$", _generated(model, operator), flags=re.MULTILINE)
        files = dict(zip(sections[1::2], sections[2::2]))
        generated = {
            name: text for name, text in files.items() if not name.startswith("functions.yaml")
        }
        assert len(generated) >= 4
        for name, text in generated.items():
            banner = text.strip().splitlines()[0]
            assert re.search(r"Generated from .*\.yaml .*by codegen/templates/\S+\.j2", banner), (
                name
            )


def test_an_unknown_operator_is_refused_with_names_like_it(model: Path) -> None:
    command = [sys.executable, "-m", "codegen.render", "--model", str(model)]
    done = subprocess.run(
        [*command, "--show", "xp"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "unknown operator 'xp'; did you mean" in done.stderr
