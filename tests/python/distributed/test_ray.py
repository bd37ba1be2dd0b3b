"""examples/distributed/ray_digits.py: Ray trains with two workers, one of which is killed.

Ray is large, so it is no part of the tests' environment. The variable TREADLE_RAY_PYTHON names the
Python of an environment that has it, and in which `python -m treadle.run --install` was run.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import re
import subprocess

import pytest

from source_tree import ROOT

PYTHON = os.environ.get("TREADLE_RAY_PYTHON", "")


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="TREADLE_RAY_PYTHON names no Python that has Ray")
def test_ray_goes_on_after_a_fault() -> None:
    program = ROOT / "examples" / "distributed" / "ray_digits.py"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [PYTHON, str(program), "--small"],
        env=dict(environment, OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    fault = re.search(r"^5 epochs; after the fault from epoch ([12]) on$", done.stdout, re.M)
    assert fault, done.stdout
    result = re.search(r"^test accuracy ([\d.]+)$", done.stdout, re.M)
    assert result and float(result[1]) >= 0.9, done.stdout
