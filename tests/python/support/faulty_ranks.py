"""Groups of processes, of which one is killed, stopped or misled at a call: what the errors of the
others say, and when.

    run(Fault("killed", rank=1, call=5), world=3, timeout=1.0)  # [Outcome(0, ...), Outcome(2, ...)]
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import random
import re
import signal
import time
from datetime import timedelta
from typing import List, NamedTuple

import treadle
import treadle.distributed as dist
from child_processes import Child, results
from process_groups import SOON, reserved_port
from treadle.distributed import _faults

CALLS = 12
# What the call of a misled rank is, where the others reduce three numbers.
MISTAKES = ("function", "shape", "dtype", "root", "skip")


class Fault(NamedTuple):
    """What happens to a rank, before which of its calls (the first one joins the group)."""

    kind: str  # killed, stopped, sleeps, or one of MISTAKES
    rank: int
    call: int


class Outcome(NamedTuple):
    """How the call of a rank failed, after how many seconds."""

    rank: int
    error: str
    text: str
    seconds: float


def _right(number: int) -> None:
    if number % 3 == 0:
        dist.broadcast(treadle.ones(3), 0)
    else:
        dist.all_reduce(treadle.ones(3))


def _wrong(kind: str, world: int, number: int) -> None:
    is_broadcast = number % 3 == 0
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if kind == "sleeps":
        time.sleep(60)
    length = 4 if kind == "shape" else 3
    dtype = treadle.float64 if kind == "dtype" else treadle.float32
    if kind == "function":
        dist.all_gather([treadle.ones(3)] * world, treadle.ones(3))
    elif kind == "skip":
        pass
    elif is_broadcast:
        dist.broadcast(treadle.ones(length, dtype=dtype), 1 if kind == "root" else 0)
    elif kind == "root":
        dist.reduce(treadle.ones(3), 1)
    else:
        dist.all_reduce(treadle.ones(length, dtype=dtype))


def _rank(
    rank: int, world: int, url: str, fault: Fault, timeout: float, answer_seconds: float
) -> Outcome:
    treadle.set_num_threads(1)
    _faults._ANSWER_SECONDS = answer_seconds
    dist.init_process_group("gloo", url, SOON, world, rank)
    dist.group.WORLD.set_timeout(timedelta(seconds=timeout))
    number = start = 0.0
    try:
        for number in range(2, CALLS + 2):
            start = time.monotonic()
            if (rank, number) == (fault.rank, fault.call):
                _wrong(fault.kind, world, number)
            else:
                _right(number)
        dist.destroy_process_group()
        return Outcome(rank, "", "", 0.0)
    except dist.DistError as error:
        seconds = time.monotonic() - start
        return Outcome(rank, type(error).__name__, str(error), seconds)


def run(fault: Fault, world: int, timeout: float) -> List[Outcome]:
    """How the calls of the other ranks ended; of a rank that was misled too. All processes are
    gone afterwards. AssertionError if one says nothing."""
    with reserved_port() as port:
        given = (f"tcp://127.0.0.1:{port}", fault, timeout, _faults._ANSWER_SECONDS)
        children = [Child(_rank, rank, world, *given) for rank in range(world)]
        is_silent = fault.kind in ("killed", "stopped", "sleeps")
        try:
            return results([c for r, c in enumerate(children) if r != fault.rank or not is_silent])
        finally:
            children[fault.rank].kill()


def complaints(fault: Fault, found: List[Outcome], timeout: float) -> List[str]:
    """What is wrong with these outcomes: an error that does not name the rank, or its call, or is
    late."""
    wrong = []
    for outcome in found:
        call = re.search(r"call (\d+) of group 0", outcome.text)
        named = re.search(rf"rank (\d+, )*{fault.rank}\b", outcome.text.partition("\n")[2])
        if not (call and named) or int(call[1]) < fault.call:
            wrong.append(f"rank {outcome.rank} says of {fault}: {outcome.text!r}")
        if outcome.seconds > timeout + 5:
            wrong.append(f"rank {outcome.rank} fails after {outcome.seconds:.2f} s by {fault}")
    return wrong


def random_fault(seed: int, world: int) -> Fault:
    """A fault of some rank at some call."""
    draw = random.Random(seed)
    kind = draw.choice(["killed", "stopped", "misled"])
    call = draw.randrange(2, CALLS)
    if kind == "misled":
        kind = draw.choice(MISTAKES)
    return Fault(kind, draw.randrange(world), call)
