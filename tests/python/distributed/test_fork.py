"""A child of a fork works, whatever other threads of its parent were doing at that moment.

Each program has threads that do one thing over and over, forks children meanwhile, and each child
does the same thing once. A child that finds a lock taken would wait for ever: it is killed after a
while, and counts.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, sys, threading, time
import numpy as np, treadle as torch
F = torch.nn.functional
torch.set_num_threads(1)
{setup}
number, done = [0], False
def work():
    number[0] += 1
    n = number[0]
    {work}
work()
def again():
    while not done:
        work()
threads = [threading.Thread(target=again) for _ in range(2)]
for thread in threads:
    thread.start()
stuck, end = 0, time.monotonic() + float(sys.argv[1])
for child in range(40):
    if child >= 3 and time.monotonic() > end:
        break
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        try:
            work()
            work()
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    stuck += status != 0
    if stuck:
        break
done = True
for thread in threads:
    thread.join()
print("stuck", stuck)
"""

# (what is made first, what is done over and over as call n)
WORK = {
    "plans of convolutions": (
        "w = torch.ones(8, 8, 3, 3)",
        # Large enough to let other threads run.
        "F.conv2d(torch.ones(1, 8, 64 + n % 100, 64 + n // 100 % 100), w, padding=1)",
    ),
    "random numbers": (
        "g = torch.Generator()",
        "torch.rand(3); torch.randn(4, generator=g); torch.randperm(5)",
    ),
    "memory": ("", "[torch.empty(size) for size in (10, 10**5, 3 * 10**5, 10**6)]"),
    "shared memory": ("", "torch.ones(100).share_memory_().sum()"),
    "products of matrices": ("x = torch.rand(64, 64)", "x @ x; torch.linalg.inv(x)"),
    "definitions": (
        "from treadle.library import Library; libraries = []",
        "libraries.append(Library(f'forked{n}_{threading.get_ident()}_{os.getpid()}', 'DEF'));"
        " libraries[-1].define('f(Tensor x) -> Tensor')",
    ),
    "recordings": (
        "from treadle.profiler import record_function",
        "record_function('x').__enter__().__exit__(None, None, None)",
    ),
    "backward passes": (
        "w = torch.ones(3, requires_grad=True)",
        "(torch.ones(3, requires_grad=True) * 2).sum().backward()",
    ),
}


def stuck_children(name: str, seconds: str) -> None:
    setup, work = WORK[name]
    program = PROGRAM.replace("{setup}", setup).replace("{work}", work)
    done = subprocess.run(
        [sys.executable, "-c", program, seconds], capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "stuck 0\n", done.stdout + done.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("name", WORK)
def test_children(name: str) -> None:
    stuck_children(name, "3")


@pytest.mark.parametrize("name", ["plans of convolutions", "random numbers"])
def test_a_few_children(name: str) -> None:
    stuck_children(name, "0.5")


GROUPS = """
import os, signal, sys, treadle, treadle.distributed as dist
from datetime import timedelta
dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
dist.all_reduce(treadle.ones(1), async_op=True).wait()
kept = dist.group.WORLD
def joins(rank):
    signal.alarm(60)
    dist.init_process_group("gloo", sys.argv[1], timedelta(seconds=20), 2, rank)
    x = treadle.ones(1)
    dist.all_reduce(x)
    os._exit(0 if x.item() == 2 else 1)
for is_destroyed in (False, True):
    if is_destroyed:
        dist.destroy_process_group()
    children = []
    for rank in range(2):
        children.append(os.fork())
        if children[-1] == 0:
            joins(rank)
    print(*(os.waitpid(child, 0)[1] for child in children))
    os.unlink(sys.argv[1][len("file://"):])
"""


def test_children_join_a_group_of_their_own(tmp_path: Path) -> None:
    """The parent is in a group with the same transport, or was and still has it."""
    done = subprocess.run(
        [sys.executable, "-c", GROUPS, (tmp_path / "store").as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "0 0\n0 0\n", done.stdout + done.stderr[-2000:]
