"""One rank of a measurement: runs each case and prints the seconds that the slowest rank took.

    python rank.py RANK WORLD ADDRESS PORT '[["all_reduce", 65536], ...]' REPEATS

All ranks are on one machine, so they share a clock: rank 0 names the time at which all begin.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import statistics
import sys
import time
from datetime import timedelta
from typing import Any, Callable, Dict, List

import treadle
import treadle.distributed as dist
from treadle import Tensor


def ring_all_reduce(whole: Tensor) -> None:
    """The sum of all ranks: parts go around once to be added, and once more to be spread."""
    rank, size = dist.get_rank(), dist.get_world_size()
    parts = whole.chunk(size)
    before, after = (rank - 1) % size, (rank + 1) % size
    for step in range(2 * (size - 1)):
        out = parts[
            (rank - step) % size if step < size - 1 else (rank + 1 - step + size - 1) % size
        ]
        into = parts[
            (rank - step - 1) % size if step < size - 1 else (rank - step + size - 1) % size
        ]
        coming = treadle.empty_like(into)
        work = dist.isend(out, after)
        dist.recv(coming, before)
        work.wait()
        if step < size - 1:
            into += coming
        else:
            into.copy_(coming)


def tree_all_reduce(whole: Tensor) -> None:
    """The sum of all ranks: by pairs down to rank 0, then back."""
    rank, size = dist.get_rank(), dist.get_world_size()
    coming = treadle.empty_like(whole)
    step = 1
    while step < size:
        if rank % (2 * step):
            dist.send(whole, rank - step)
            break
        if rank + step < size:
            dist.recv(coming, rank + step)
            whole += coming
        step *= 2
    if rank:
        dist.recv(whole, rank - step)
    works = []
    while step > 1:
        step //= 2
        if rank + step < size:
            works.append(dist.isend(whole, rank + step))
    for work in works:
        work.wait()


def halving_doubling_all_reduce(whole: Tensor) -> None:
    """The sum of all ranks, a power of 2: halves are exchanged and added, each time shorter; then
    the same way back."""
    rank, size = dist.get_rank(), dist.get_world_size()
    spans, mine = [], whole
    step = size // 2
    while step:
        halves = mine.chunk(2)
        keep = 1 if rank & step else 0
        spans.append((mine, step, keep))
        coming = treadle.empty_like(halves[keep])
        work = dist.isend(halves[1 - keep], rank ^ step)
        dist.recv(coming, rank ^ step)
        work.wait()
        mine = halves[keep]
        mine += coming
        step //= 2
    for span, step, keep in reversed(spans):
        halves = span.chunk(2)
        work = dist.isend(halves[keep], rank ^ step)
        dist.recv(halves[1 - keep], rank ^ step)
        work.wait()


def _send(tensor: Tensor) -> None:
    if dist.get_rank() == 0:
        dist.send(tensor, 1)
    elif dist.get_rank() == 1:
        dist.recv(tensor, 0)


def _case(name: str, size: int) -> Callable[[], Any]:
    """The call of a case, of tensors of so many bytes."""
    world = dist.get_world_size()
    whole = treadle.ones(max(size // 4, 1))
    part = treadle.ones(max(size // 4 // world, 1))
    gathered = treadle.empty(part.numel() * world)
    calls: Dict[str, Callable[[], Any]] = {
        "send": lambda: _send(whole),
        "all_reduce": lambda: dist.all_reduce(whole),
        "all_gather": lambda: dist.all_gather_into_tensor(gathered, part),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, gathered),
        "broadcast": lambda: dist.broadcast(whole, 0),
        "all_to_all": lambda: dist.all_to_all_single(treadle.empty_like(gathered), gathered),
        "barrier": dist.barrier,
        "ring all_reduce": lambda: ring_all_reduce(whole),
        "tree all_reduce": lambda: tree_all_reduce(whole),
        "halving-doubling all_reduce": lambda: halving_doubling_all_reduce(whole),
    }
    return calls[name]


def _check() -> None:
    """AssertionError unless each way to add gives the sum."""
    world = dist.get_world_size()
    for add in (ring_all_reduce, tree_all_reduce, halving_doubling_all_reduce):
        whole = treadle.full((64 * world,), float(dist.get_rank()))
        if world & (world - 1) == 0 or add is not halving_doubling_all_reduce:
            add(whole)
            assert whole.eq(world * (world - 1) / 2).all(), add.__name__


def _timed(call: Callable[[], Any], pause: float) -> float:
    """The seconds until the slowest rank is done, from a time that all know before."""
    begin = treadle.tensor([time.monotonic() + pause], dtype=treadle.float64)
    dist.broadcast(begin, 0)
    at = begin.item()
    while (left := at - time.monotonic()) > 0:
        time.sleep(left - 0.0005 if left > 0.001 else 0)
    call()
    spent = treadle.tensor([time.monotonic() - at], dtype=treadle.float64)
    dist.all_reduce(spent, dist.ReduceOp.MAX)
    return float(spent)


def _requests(store: Any, count: int) -> float:
    """How many requests a second a store answers, while all ranks ask at once."""
    store.set(f"measured/{dist.get_rank()}", "value")
    dist.barrier()
    begin = time.monotonic()
    for _ in range(count):
        store.get(f"measured/{dist.get_rank()}")
    spent = treadle.tensor([time.monotonic() - begin], dtype=treadle.float64)
    dist.all_reduce(spent, dist.ReduceOp.MAX)
    return count * dist.get_world_size() / float(spent)


def main() -> None:
    rank, world, address, port, cases, repeats = sys.argv[1:]
    treadle.set_num_threads(1)
    limit = timedelta(seconds=120)
    store = dist.TCPStore(address, int(port), int(world), rank == "0", limit)
    begin = time.monotonic()
    dist.init_process_group(
        "gloo", store=store, rank=int(rank), world_size=int(world), timeout=limit
    )
    started = time.monotonic() - begin
    _check()
    found: List[Any] = []
    pause = 0.05
    for name, size in json.loads(cases):
        call = _case(name, size)
        call()
        times = [_timed(call, pause) for _ in range(int(repeats))]
        found.append([name, size, statistics.median(times)])
    requests = _requests(store, 100)
    dist.barrier()
    if rank == "0":
        print(json.dumps({"cases": found, "start": started, "requests": requests}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
