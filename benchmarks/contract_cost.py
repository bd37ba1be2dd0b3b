"""The cost of checking the contract: instructions of a one-element `a + b` from Python, counted by
callgrind with the checks and without them.

    ./dev bench contract

Instructions are counted for two numbers of calls, so that starting Python falls out of the
difference. Without: benchmarks/contract/free_add.cc, loaded before the library.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FREE = ROOT / "bazel-bin" / "benchmarks" / "contract_free.so"
FEW, MANY = 200, 40200
MOST = 0.03

PROGRAM = """
import sys
import treadle

a, b = treadle.ones(1), treadle.ones(1)
for _ in range(int(sys.argv[1])):
    a + b
"""


def instructions(calls: int, preload: str = "") -> int:
    """Instructions of a process that makes so many calls."""
    environment = {
        **os.environ,
        "LD_PRELOAD": preload,
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        done = subprocess.run(
            [*command, sys.executable, "-c", PROGRAM, str(calls)],
            env=environment,
            capture_output=True,
            text=True,
        )
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or found is None:
        sys.exit(f"contract_cost: callgrind failed:\n{done.stderr[-2000:]}")
    return int(found[1])


def per_call(preload: str = "") -> float:
    return (instructions(MANY, preload) - instructions(FEW, preload)) / (MANY - FEW)


def main() -> int:
    if shutil.which("valgrind") is None:
        sys.exit("contract_cost: valgrind was not found; install it with: apt-get install valgrind")
    if not FREE.exists():
        sys.exit("contract_cost: run it by ./dev bench contract, which builds what it needs")
    checked, free = per_call(), per_call(str(FREE))
    cost = (checked - free) / free
    print("instructions of a + b, one float32 element, from Python")
    print(f"  with the contract     {checked:9.1f}")
    print(f"  without               {free:9.1f}")
    print(f"  cost of the contract  {cost:9.2%}   (at most {MOST:.0%})")
    return int(cost > MOST)


if __name__ == "__main__":
    sys.exit(main())
