"""The examples of what is made outside of the tree: each in a folder that holds nothing else, built
by the commands of its README against the installed wheel; and several backends at once.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from environments import ROOT, fresh, testing_wheel, wheel  # noqa: F401  (fixtures)
from source_tree import PYTHON

EXAMPLES = ROOT / "examples"
# By its folder: what its tests import beside what it asks for itself.
PROJECTS = {
    "backends/minimal": [],
    "backends/opencl": ["scikit-learn"],
    "layouts": [],
    "operators": [],
}

pytestmark = [pytest.mark.slow, pytest.mark.builds]


def _commands(readme: str) -> list[str]:
    """The commands of a README, without those that set the machine up."""
    block = re.search(r"^```\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    lines = block[1].splitlines() if block else re.findall(r"^    (.*)$", readme, re.MULTILINE)
    return [line for line in lines if not line.startswith(("apt ", "pip install 'treadle"))]


def _run(command: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def project(
    request: pytest.FixtureRequest,
    wheel: Path,  # noqa: F811
    testing_wheel: Path,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, dict[str, str]]:
    """A project, built and installed as its README says: its folder and its environment."""
    name = request.param
    folder = tmp_path_factory.mktemp("alone")
    needed = [f"treadle[codegen] @ {wheel.as_uri()}", str(testing_wheel), "setuptools", "wheel"]
    environment = fresh(folder, *needed, *PROJECTS[name])
    own = folder / "project"
    shutil.copytree(EXAMPLES / name, own, ignore=shutil.ignore_patterns("build", "__pycache__"))
    commands = _commands((own / "README.md").read_text())
    assert any(command.startswith(("pip ", "c++ ")) for command in commands)
    for command in commands:
        _run(command, own, environment)
    return own, environment


@pytest.mark.parametrize("project", PROJECTS, indirect=True)
def test_it_passes_its_own_tests(project: tuple[Path, dict[str, str]]) -> None:
    folder, environment = project
    summary = _run("python -m pytest -q -p no:cacheprovider tests", folder, environment)
    summary = summary.splitlines()[-1]
    assert re.match(r"\d+ passed", summary) and "skipped" not in summary


@pytest.mark.parametrize("project", ["backends/opencl"], indirect=True)
def test_several_backends_at_once(project: tuple[Path, dict[str, str]]) -> None:
    """The tests of backends hold with OpenCL's beside the minimal one and its copy: they share
    a process, train in it and load what the other saved."""
    folder, environment = project
    where = "import treadle_opencl; print(treadle_opencl.library())"
    library = _run(f'python -c "{where}"', folder, environment).strip()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        + ["-k", "three_backends or two_in_one_process or saved_on_one"]
        + ["backends/test_backends.py"],
        cwd=PYTHON,
        env={**os.environ, "TREADLE_OPENCL_BACKEND": library},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert done.stdout.splitlines()[-1].startswith("3 passed")
