"""A few seconds of threads that do all that they can to the same tensors: tests/fuzz/threads.py."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import treadle
from source_tree import TESTS


def mix(*arguments: str) -> subprocess.CompletedProcess:
    places = (str(Path(treadle.__file__).absolute().parents[1]), str(TESTS))
    return subprocess.run(
        [sys.executable, "-m", "fuzz", "--threads", *arguments],
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "2"},
    )


def test_threads_neither_crash_nor_stand_still() -> None:
    done = mix("6", "--seed", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith(" rounds, 0 findings")


def test_a_name_that_is_no_action_is_refused() -> None:
    done = mix("1", "--only", "nothing")
    assert done.returncode == 2
    assert done.stderr.startswith("fuzz: expected one of new, ")
    assert done.stderr.endswith(", got nothing\n")
