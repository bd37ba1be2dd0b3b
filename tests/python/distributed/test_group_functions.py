"""Groups of groups, coalesced calls, gradients of collective functions, transports of a program,
the end of groups."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from datetime import timedelta
from typing import Any, List

import numpy as np
import pytest

import treadle
import treadle.distributed as dist
from process_groups import reserved_port, together
from treadle.distributed import _functional_collectives as functional
from treadle.distributed.nn import functional as with_gradients


def _groups(rank: int, world: int) -> None:
    mine, every = dist.new_subgroups_by_enumeration([[0, 2], [1]])
    assert len(every) == 2 and mine.size() == (1 if rank == 1 else 2)
    single, _ = dist.new_subgroups(1)
    assert single.members == (rank,)
    part = dist.split_group(split_ranks=[[0, 1], [2]], group_desc="half")
    assert part.members == ((2,) if rank == 2 else (0, 1)) and part.group_desc == "half"
    one = treadle.ones(1)
    dist.all_reduce(one, group=part)
    assert one.item() == part.size()
    dist.set_timeout(timedelta(seconds=7), part)
    assert part.timeout == timedelta(seconds=7)
    assert dist.get_backend_config(part) == "cpu:gloo" and dist.get_pg_count() >= 4
    assert dist.get_backend_impl(part.group_name).name() == "gloo"
    if rank == 2:
        return
    smaller = dist.shrink_group([2])
    assert smaller is dist.group.WORLD and dist.get_world_size() == 2
    one = treadle.ones(1)
    dist.all_reduce(one)
    assert one.item() == 2


def _coalesced(rank: int, world: int) -> None:
    tensors = [treadle.full((n,), float(rank)) for n in (1, 5)]
    with dist._coalescing_manager(async_ops=True) as several:
        for tensor in tensors:
            dist.all_reduce(tensor)
        assert tensors[0].item() == rank  # not yet
    several.wait()
    total = float(sum(range(world)))
    assert [t.tolist() for t in tensors] == [[total], [total] * 5]
    dist.all_reduce_coalesced(tensors, dist.ReduceOp.MAX)
    assert tensors[1].tolist() == [total] * 5
    places = [treadle.zeros(world), treadle.zeros(world, 2)]
    with dist._coalescing_manager():
        dist.all_gather_into_tensor(places[0], treadle.full((1,), float(rank)))
        dist.all_gather_into_tensor(places[1], treadle.full((2,), float(rank)))
    assert places[0].tolist() == list(range(world))
    lists = [[treadle.zeros(1), treadle.zeros(2)] for _ in range(world)]
    dist.all_gather_coalesced(lists, [treadle.full((n,), float(rank)) for n in (1, 2)])
    assert [pair[1].tolist() for pair in lists] == [[float(r)] * 2 for r in range(world)]
    joined = treadle.zeros(2 * world) if rank == 1 else None
    dist.gather_single(treadle.full((2,), float(rank)), joined, 1)
    if joined is not None:
        assert joined.tolist() == np.repeat(np.arange(world), 2).tolist()
    if rank == 0:
        dist.send_object_list([{"a": treadle.ones(2)}, "text"], 1)
    elif rank == 1:
        received: List[Any] = [None, None]
        assert dist.recv_object_list(received) == 0
        assert received[0]["a"].tolist() == [1, 1] and received[1] == "text"
    future = dist.all_reduce(treadle.ones(1), async_op=True).get_future()
    assert future.then(lambda f: f.value()[0].item() * 2).wait() == 2 * world


def _gradients(rank: int, world: int) -> None:
    """The sum over processes of <weights, output> has the gradient that finite values give."""
    x = treadle.arange(float(world)) + rank
    x.requires_grad_()
    last = world - 1
    weight = rank + 1.0
    weights = [r + 1.0 for r in range(world)]

    def gradient(output: treadle.Tensor) -> List[float]:
        (found,) = treadle.autograd.grad((output * weight).sum(), x)
        return list(found.tolist())

    assert gradient(with_gradients.all_reduce(x)) == [sum(weights)] * world
    expected = [sum(weights)] * world if rank == last else [0.0] * world
    assert gradient(with_gradients.broadcast(x, last)) == expected
    assert gradient(with_gradients.reduce(x, last)) == [weights[last]] * world
    assert gradient(treadle.stack(with_gradients.all_gather(x))) == [sum(weights)] * world
    gathered = treadle.stack(with_gradients.gather(x, last))
    assert gradient(gathered) == [weights[last]] * world
    pieces = list(x.chunk(world))
    assert gradient(with_gradients.scatter(pieces, last)) == (
        weights if rank == last else [0.0] * world
    )
    assert gradient(with_gradients.reduce_scatter(pieces[0], pieces)) == weights
    turned = with_gradients.all_to_all([treadle.zeros(1)] * world, pieces)
    assert gradient(treadle.cat(turned)) == weights
    assert gradient(with_gradients.all_to_all_single(treadle.zeros(world), x)) == weights
    assert gradient(functional.all_gather_tensor(x, 0, dist.group.WORLD)) == [sum(weights)] * world
    scattered = functional.reduce_scatter_tensor(x, "sum", 0, list(range(world)))
    assert scattered.shape == (1,)
    shifted = functional.permute_tensor(x.detach(), [(r + 1) % world for r in range(world)], "0")
    assert shifted[0].item() == (rank - 1) % world


def _abort(rank: int, world: int) -> None:
    """Calls under way end at once in the group that is aborted, and in the others, too."""
    group = dist.new_group()
    start = time.monotonic()
    if rank == 0:
        threading.Timer(0.2, group.abort).start()
        with pytest.raises(dist.DistNetworkError, match="all_reduce: expected"):
            dist.all_reduce(treadle.ones(100_000), group=group)
    elif rank == 1:
        work = dist.irecv(treadle.zeros(1), 0, group=group)
        with pytest.raises(dist.DistNetworkError, match="recv: expected"):
            work.wait()
        assert not work.is_success()
        engine = group._get_backend("cpu").group
        number, name, error = engine.next_failure(1.0)
        assert (number, name) == (1, "recv") and isinstance(error, dist.DistNetworkError)
        assert [entry["state"] for entry in engine.record()][-1] == "failed"
    assert time.monotonic() - start < 5


def _everything(rank: int, world: int) -> None:
    _coalesced(rank, world)
    _gradients(rank, world)
    _abort(rank, world)
    dist.barrier()
    _groups(rank, world)


def test_groups_and_gradients() -> None:
    together(3, _everything)


class Doubling(dist.ProcessGroup):
    """A transport of a program: all_reduce() of one process doubles the tensor."""

    def allreduce(self, tensors: List[treadle.Tensor], opts: Any = None) -> dist.Work:
        tensors[0].mul_(2)
        return Done(tensors)

    def barrier(self, opts: Any = None) -> dist.Work:
        return Done([])

    def getBackendName(self) -> str:  # noqa: N802
        return "doubling"


class Done(dist.Work):
    def __init__(self, tensors: List[treadle.Tensor]) -> None:
        super().__init__()
        self.tensors = tensors

    def is_completed(self) -> bool:
        return True

    def wait(self, timeout: Any = None) -> bool:
        return True

    def result(self) -> List[treadle.Tensor]:
        return self.tensors


def test_a_transport_of_the_program() -> None:
    made = []

    def make(store: Any, rank: int, size: int, timeout: timedelta) -> Doubling:
        made.append((rank, size, timeout))
        return Doubling(rank, size)

    dist.Backend.register_backend("doubling", make, devices=["cpu"])
    with pytest.raises(RuntimeError, match="expected a new name, got 'doubling'"):
        dist.Backend.register_backend("doubling", make)
    assert dist.is_backend_available("doubling") and dist.Backend.DOUBLING == "doubling"
    store = dist.HashStore()
    dist.init_process_group("doubling", store=store, rank=0, world_size=1)
    try:
        one = treadle.ones(2)
        dist.all_reduce(one)
        assert one.tolist() == [2, 2] and made[0][:2] == (0, 1)
        assert dist.all_reduce(one, async_op=True).get_future().value()[0] is one
    finally:
        dist.destroy_process_group()


PROGRAM = """
import sys, os, treadle, treadle.distributed as dist
from datetime import timedelta
rank = int(sys.argv[1])
dist.init_process_group("gloo", sys.argv[2], timedelta(seconds=20), 2, rank)
if rank == 0:
    work = dist.irecv(treadle.zeros(1), 1)
    later = dist.all_reduce(treadle.ones(1), async_op=True)
    child = os.fork()
    if child == 0:
        assert not dist.is_initialized()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_the_program_ends_with_calls_under_way() -> None:
    with reserved_port() as port:
        _end_with_calls_under_way(f"tcp://127.0.0.1:{port}")


def _end_with_calls_under_way(url: str) -> None:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(rank), url],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(os.environ, PYTHONWARNINGS="ignore"),
        )
        for rank in range(2)
    ]
    try:
        for child in children:
            output, _ = child.communicate(timeout=30)
            assert (child.returncode, output) == (0, b"")
    finally:
        for child in children:
            child.kill()
