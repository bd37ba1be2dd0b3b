"""./dev docs: makes the reference pages of the operators in build/docs; nothing of it is committed.

The examples on the pages are made from the tests' samples and run by the package just built.
"""

from __future__ import annotations

import subprocess

import bazel
import environment
from ui import ROOT, DevError, merged, run, say, step

from tests import python_environment

FOLDER = ROOT / "build" / "docs"


def main() -> int:
    """Makes every page; the exit status of the first part that failed."""
    environment.prepare()
    config = bazel.Config()
    package = bazel.build_package(config)
    variables = python_environment(config, package)
    work = ROOT / "build" / "docs-parts"
    work.mkdir(parents=True, exist_ok=True)
    examples, table = work / "examples.json", work / "table.md"
    python = str(environment.PYTHON)
    with step("Running the examples"):
        command = [python, "-m", "treadle_testing.examples", str(examples)]
        status = run(command, env=variables)
    if status:
        raise DevError("an operator has no example; the lines above say which", status)
    command = [python, "-m", "treadle", "ops", "--table", "--markdown"]
    printed = subprocess.run(command, env=merged(variables), stdout=subprocess.PIPE, check=True)
    table.write_bytes(printed.stdout)
    model = package / "treadle" / "opmodel.json"
    arguments = ["--model", str(model), "--examples", str(examples), "--table", str(table)]
    status = run([python, "-m", "codegen.reference", *arguments, "--out-dir", str(FOLDER)])
    if not status:
        say(f"the pages begin at {FOLDER / 'index.md'}")
    return status
