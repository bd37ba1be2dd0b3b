"""No call crashes or hangs because the memory of its arguments is written meanwhile: what an
operator checks is what it uses.

By the model: every operator, over memory that another process writes (shared_arrays.py). By hand:
large calls, over memory of which another process writes a part.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
PARTS = 8


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_operators_over_memory_that_is_written(part: int, tmp_path: Path) -> None:
    journal, problems, first = tmp_path / "journal", [], 0
    journal.write_text(" " * 200)
    while len(problems) < 40:
        try:
            done = subprocess.run(
                [sys.executable, str(HERE / "shared_arrays.py"), str(journal)]
                + [str(n) for n in (part, PARTS, first)],
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
                timeout=600,
            )
            how = f"ended with {done.returncode}: {done.stderr[-300:]}"
        except subprocess.TimeoutExpired:
            how = "hangs"
        if how.startswith("ended with 0:"):
            break
        # The call in the journal ended the process: go on after it.
        number, label = journal.read_text().split(maxsplit=1)
        problems.append(f"{label.strip()}: {how}")
        first = int(number) + 1
    assert not problems, "\n".join([f"{len(problems)} problems:", *problems])


# Calls by name. `index` has N zeros, but for what the other process writes.
LARGE = {
    "gather": "torch.gather(torch.zeros(16), 0, index)",
    "gather of columns": "torch.gather(torch.zeros(16, 8), 0, index.view(-1, 8))",
    "take_along_dim": "torch.take_along_dim(torch.zeros(16), index, 0)",
    "scatter_": "torch.zeros(16).scatter_(0, index, torch.ones(N))",
    "scatter_ of columns": "torch.zeros(16, 8).scatter_(0, index.view(-1, 8), 1.0)",
    "scatter_add_": "torch.zeros(16).scatter_add_(0, index, torch.ones(N))",
    "scatter_reduce_": "torch.zeros(16).scatter_reduce_(0, index, torch.ones(N), 'mean')",
    "index_select": "torch.zeros(16).index_select(0, index)",
    "x[index]": "torch.zeros(16)[index]",
    "x[index] of rows": "torch.zeros(16, 4)[index]",
    "index_put_": "torch.zeros(16).index_put_((index,), torch.ones(N), accumulate=True)",
    "index_add_": "torch.zeros(16).index_add_(0, index, torch.ones(N))",
    "index_copy_": "torch.zeros(16, 2).index_copy_(0, index, torch.ones(N, 2))",
    "index_fill_": "torch.zeros(16).index_fill_(0, index, 2.0)",
    "index_reduce_": "torch.zeros(16).index_reduce_(0, index, torch.ones(N), 'amax')",
    "take": "torch.take(torch.zeros(16), index)",
    "put_": "torch.zeros(16).put_(index, torch.ones(N))",
    "embedding": "F.embedding(index, torch.zeros(16, 4))",
    "embedding backward": "torch.ops.aten.embedding_dense_backward"
    "(torch.ones(N, 4), index, 16, -1, False)",
    "embedding_bag": "F.embedding_bag(index.view(-1, 16), torch.zeros(16, 4))",
    "searchsorted's sorter": "torch.searchsorted(torch.zeros(N), torch.ones(1000), sorter=index)",
    "one_hot": "F.one_hot(index, 2)",
    "nll_loss": "F.nll_loss(torch.zeros(N, 2), index)",
    "bincount": "torch.bincount(index, minlength=2)",
    "repeat_interleave": "torch.repeat_interleave(torch.ones(N), index)",
    "nonzero": "torch.nonzero(index)",
    "nonzero of rows": "torch.nonzero(index.view(-1, 64))",
    "x[mask]": "torch.zeros(N)[index != 0]",
    "masked_select": "torch.masked_select(torch.zeros(N), index.view(torch.bool)[:N])",
    "masked_scatter": "torch.zeros(N).masked_scatter(index.view(torch.bool)[:N], torch.ones(N))",
    "argmax of 16-bit floats": "index.view(torch.float16).argmax()",
    "unique rows": "torch.unique(index.view(-1, 8)[:4096], dim=0)",
    "topk": "torch.topk(index, 100)",
    "sort": "torch.sort(index)",
    "max_unpool": "F.max_unpool1d(torch.ones(1, N // 4), index[:N // 4].view(1, -1), 4)",
    "lu_unpack": "torch.lu_unpack(torch.zeros(N // 2, 2, 2), index.view(-1, 2).int() + 1)",
}

PROGRAM = """
import mmap, os, signal, sys, time
import numpy as np, treadle as torch
F = torch.nn.functional
N = 1 << 19
a = np.frombuffer(mmap.mmap(-1, 8 * N), np.int64)
index = torch.from_numpy(a)
some = a[N // 2 :][: int(sys.argv[3])]
bad, parent = np.full(len(some), 1 << 44), os.getpid()
writer = os.fork()
while writer == 0 and os.getppid() == parent:
    for _ in range(1000):
        some[:] = bad
        some[:] = 0
if writer == 0:
    os._exit(0)
end = time.monotonic() + float(sys.argv[2])
calls = 0
while time.monotonic() < end or calls < 5:
    calls += 1
    try:
        eval(sys.argv[1])
    except (IndexError, RuntimeError, MemoryError):
        pass
os.kill(writer, signal.SIGKILL)
print("lives")
"""


def live(call: str, seconds: str, written: int = 64) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, call, seconds, str(written)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "lives\n", f"{done.returncode}: {done.stderr[-2000:]}"


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_calls_over_memory_that_is_written(name: str) -> None:
    live(LARGE[name], "1.0")


@pytest.mark.parametrize("name", ["gather", "scatter_", "nonzero of rows", "searchsorted's sorter"])
def test_a_few_calls_over_memory_that_is_written(name: str) -> None:
    live(LARGE[name], "1.0")


# A place outside of the array need not end the process: other memory lies there.
PLACES = {
    "argmax of 16-bit floats": "index.view(torch.float16).argmax()",
    "max of 16-bit floats": "index.view(torch.float16).max(0).indices",
    "argmax": "index.argmax()",
    "topk": "index.topk(3).indices.max()",
    "kthvalue": "index.kthvalue(N).indices",
    "median": "index.view(-1, N).median(1).indices",
    "mode": "index[N // 2 - 50 :][:100].mode(0).indices",
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if "16-bit" in n else pytest.mark.slow) for n in PLACES]
)
def test_places_are_those_of_the_array(name: str) -> None:
    """One number is there or not: what looked for the largest may not find it again."""
    call = f"0 <= {PLACES[name]}.item() < 4 * N or sys.exit('outside')"
    live(call, "1.0", written=1)
