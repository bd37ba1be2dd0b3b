"""The programs of docs/distributed.md run in two processes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from source_tree import ROOT

PAGE = (ROOT / "docs" / "distributed.md").read_text()
# A program's first line is its name: `# train.py: what it does`.
PROGRAMS = dict(re.findall(r"^```py\n# (\w+\.py): (.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_programs_of_the_page(tmp_path: Path) -> None:
    assert sorted(PROGRAMS) == ["divided.py", "sharded.py", "stages.py", "train.py"]
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text("# " + text)
    # All of them in the same processes, which starts Python once.
    names = sorted(PROGRAMS)
    (tmp_path / "all.py").write_text(
        f"import runpy\nfor name in {names!r}:\n    runpy.run_path(name, run_name='__main__')\n"
    )
    launcher = ["-m", "treadle.distributed.run", "--standalone", "--nproc-per-node", "2"]
    printed = _run([sys.executable, *launcher, "all.py"], tmp_path)
    assert re.search(r"^loss 0\.0000$", printed, re.MULTILINE), printed
