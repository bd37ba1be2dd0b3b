"""./dev demo: the wheel, in an empty virtual environment, trains on handwritten digits."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib

import bazel
import environment
from ui import ROOT, run, say, step

# The example's needs beside the wheel: the data, a progress bar, the picture.
EXTRAS = ["scikit-learn", "tqdm", "matplotlib"]
FOLDER = ROOT / "build" / "demo"


def main() -> int:
    environment.prepare()
    wheel = bazel.build_wheel()
    key = hashlib.sha256(wheel.read_bytes()).digest() + " ".join(EXTRAS).encode()
    fresh = environment.virtual_environment(
        FOLDER, [str(wheel), "numpy", *EXTRAS], key, f"Installing {wheel.name}"
    )
    if not fresh:
        say(f"{wheel.name} is installed in {FOLDER.relative_to(ROOT)}")
    with step("Training"):
        # Python's own settings are left out, so that the wheel is what runs.
        environment_variables = {"PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": ""}
        python = str(FOLDER / "bin" / "python")
        return run([python, "-m", "treadle.run", "examples/digits.py"], env=environment_variables)
