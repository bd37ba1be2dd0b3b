"""Nothing grows with a number that only describes the work: any call with huge numbers answers at
once, with a result or with an error.

By the model: every operator, with each integer of its samples made huge (huge_numbers.py). By hand:
what no sample has.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import treadle

HERE = Path(__file__).resolve().parent
PARTS = 4
HANGS = 20.0  # seconds of one call after which its process is ended


def made_calls(journal: Path, part: int, parts: int, first: int) -> tuple[int, str, str]:
    """The status of the process that makes calls, what it printed, and what its journal says."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "huge_numbers.py"), str(journal)]
        + [str(n) for n in (part, parts, first)],
        # The address space is limited, and each thread would take some for its stack.
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    last, since = "", time.monotonic()
    while process.poll() is None:
        time.sleep(0.2)
        now = journal.read_text()
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > 3 * HANGS:
            process.kill()
    assert process.stdout is not None
    return process.wait(), process.stdout.read(), journal.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_operators_with_huge_numbers(part: int, tmp_path: Path) -> None:
    journal, problems, first = tmp_path / "journal", [], 0
    journal.write_text("-1".ljust(200))
    while len(problems) < 40:
        status, printed, last = made_calls(journal, part, PARTS, first)
        problems += printed.splitlines()
        if status == 0:
            break
        # The call in the journal ended the process, or was ended: go on after it.
        number, _, label = last.strip().partition(" ")
        problems.append(f"{label}: the process ended with {status}")
        first = int(number) + 1
    assert not problems, "\n".join([f"{len(problems)} problems:", *problems])


# Calls that no sample has: sizes of 0 beside huge ones, numbers that are too large only together.
CALLS = {
    "padding of every side": "torch.nn.ReplicationPad3d(498444555)(torch.zeros(1, 1, 1, 1, 1))",
    "padding of two dimensions": "F.pad(torch.zeros(1, 1, 1, 1), [2**24] * 4, mode='replicate')",
    "no row of a huge expansion": "torch.zeros(1).expand(3, 2**45)[NONE]",
    "no column of a huge expansion": "torch.zeros(1).expand(2**45, 3, 2**10)[:, NONE]",
    "none selected": "torch.zeros(1).expand(3, 2**45).index_select(0, NONE)",
    "no embedding": "F.embedding(NONE, torch.zeros(1).expand(3, 2**45))",
    "a product of no elements": "torch.bmm(torch.zeros(2**40, 0, 1), torch.zeros(2**40, 1, 0))",
    "a sum of products of no elements": "torch.baddbmm(torch.zeros(2**40, 0, 0),"
    " torch.zeros(2**40, 0, 1), torch.zeros(2**40, 1, 0))",
    "matrices of no elements": "torch.linalg.inv(torch.zeros(2**40, 0, 0))",
    "attention of nothing": "F.scaled_dot_product_attention(*[torch.zeros(2**40, 0, 1, 1)] * 3)",
    "repeats of nothing": "torch.zeros(0).repeat(2**40)",
    "combinations of nothing": "torch.combinations(NONE, 2**30, with_replacement=True)",
    "triangle": "torch.tril_indices(2**31, 1, -(2**31) + 2)",
    "powers of nothing": "torch.vander(torch.zeros(0), 2**40)",
    "classes of nothing": "F.one_hot(NONE, 2**40)",
    "chunks of nothing": "torch.zeros(0, 2**40).chunk(2**40, 1)",
    "steps of a convolution": "F.conv1d(torch.zeros(1, 1, 3), torch.zeros(1, 1, 1), padding=2**40,"
    " stride=2**38)",
    "windows of a pool": "F.avg_pool3d(torch.zeros(1, 1, 3, 3, 3), 2**31, stride=2**33,"
    " padding=2**30)",
    "an image of no channels": "F.interpolate(torch.zeros(1, 0, 3, 3), size=(2**30, 2**20))",
    "a power of a matrix": "torch.linalg.matrix_power(torch.zeros(1, 1), 2**62)",
    "differences": "torch.diff(torch.zeros(3, 0), n=2**40, dim=1)",
    "a polynomial": "torch.special.chebyshev_polynomial_t(torch.ones(3) * 0.5, 1e15)",
    "distances of nothing": "torch.cdist(torch.zeros(2**33, 1, 0), torch.zeros(2**33, 0, 0))",
    "text of a huge expansion": "repr(torch.zeros(1).expand(2**40, 2**10))",
    "threads": "torch.set_num_threads(4096)",
}

PROGRAM = """
import sys, time
import treadle as torch
from treadle_testing import limits
F = torch.nn.functional
NONE = torch.tensor([], dtype=torch.int64)
limits.apply()
begun = time.process_time()
try:
    eval(sys.argv[1])
except (RuntimeError, MemoryError, ValueError):
    pass
print(f"{time.process_time() - begun:.1f}")
"""


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_huge_numbers(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, CALLS[name]], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"
    assert float(done.stdout) < 2, done.stdout


THREADS = """
import resource, sys
import treadle as torch
torch.ones(3)
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20),) * 2)
before = torch.get_num_threads()
try:
    torch.set_num_threads(4096)
except RuntimeError as error:
    print(str(error).rsplit(" ", 1)[0])
print(torch.get_num_threads() == before, float(torch.ones(10**7).sum()))
"""


def test_threads_that_the_system_has_no_room_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == (
        "set_num_threads: expected a number of threads that the system has room for, got 4096;"
        " it refused the one after\nTrue 10000000.0\n"
    ), done.stdout + done.stderr[-2000:]


def test_an_empty_index_needs_no_memory() -> None:
    none = treadle.tensor([], dtype=treadle.int64)
    wide = treadle.zeros(1).expand(3, 2**45)
    assert wide[none].shape == (0, 2**45)
    assert wide.index_select(0, none).shape == (0, 2**45)
    assert treadle.zeros(1).expand(2**45, 3, 2)[:, none].shape == (2**45, 0, 2)
