"""Fresh environments that know the wheels and nothing of this tree; `wheel` and `testing_wheel` are
fixtures."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from source_tree import ROOT

_DROPPED = (
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "VIRTUAL_ENV",
    "ASAN_OPTIONS",
    "UBSAN_OPTIONS",
)


@pytest.fixture(scope="session")
def wheel() -> Path:
    """The wheel, built anew where something changed; with the vector code of the tree's build."""
    return _built("wheel")


@pytest.fixture(scope="session")
def testing_wheel() -> Path:
    """The wheel of treadle_testing."""
    return _built("testing_wheel")


def _built(target: str) -> Path:
    targets = os.environ.get("TREADLE_TARGETS")
    options = [f"--define=treadle_targets={targets}"] if targets else []
    done = subprocess.run(
        ["bazel", "build", *options, f"//python_bindings:{target}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    (found,) = (ROOT / "bazel-bin" / "python_bindings" / target).glob("*.whl")
    return found


def fresh(folder: Path, *install: str) -> dict[str, str]:
    """The variables for a program in a new virtual environment, with what `pip install` is given.
    Nothing of this process's paths is in them: what a wheel does not carry is not found."""
    variables = {
        **{k: v for k, v in os.environ.items() if k not in _DROPPED},
        "HOME": str(folder),
        "PYTHONNOUSERSITE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        # Where pip keeps what it downloaded, which another home would hide.
        "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip")),
    }
    base = getattr(sys, "_base_executable", sys.executable)
    subprocess.run([base, "-m", "venv", str(folder / "venv")], check=True, env=variables)
    variables["PATH"] = f"{folder / 'venv' / 'bin'}:{variables['PATH']}"
    done = subprocess.run(
        ["pip", "install", "-q", *install],
        env=variables,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return variables
