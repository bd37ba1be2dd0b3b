"""treadle.distributed, with two and three processes on this machine."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, Callable, List

import numpy as np
import pytest

import treadle
import treadle.distributed as dist
from child_processes import Child, results
from process_groups import SOON, joined, reserved_port, together

WORLDS = [2, 3]


def _numbers(rank: int, shape: Any, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(rank).standard_normal(shape).astype(dtype)


# ---- Collective functions ----

REDUCED = {
    dist.ReduceOp.SUM: lambda values: sum(values),
    dist.ReduceOp.AVG: lambda values: sum(values) / len(values),
    dist.ReduceOp.PRODUCT: lambda values: np.prod(values, axis=0),
    dist.ReduceOp.MIN: lambda values: np.min(values, axis=0),
    dist.ReduceOp.MAX: lambda values: np.max(values, axis=0),
}


def _all_reduce(rank: int, world: int) -> dict:
    found = {}
    for op in REDUCED:
        for shape in ((), (3,), (40, 50), (0,)):
            tensor = treadle.from_numpy(_numbers(rank, shape))
            assert dist.all_reduce(tensor, op) is None
            found[op, shape] = tensor.numpy()
    apart = treadle.from_numpy(_numbers(rank, (40, 50))).t()
    dist.all_reduce(apart)
    found["a transposed one"] = apart.t().numpy()
    whole = treadle.tensor([rank + 1, 3], dtype=treadle.int64)
    dist.all_reduce(whole, dist.ReduceOp.BOR)
    found["or"] = whole.tolist()
    half = treadle.full((2,), 1.5, dtype=treadle.bfloat16)
    dist.all_reduce(half)
    found["bfloat16"] = half.tolist()
    return found


@pytest.mark.parametrize("world", WORLDS)
def test_all_reduce(world: int) -> None:
    found = together(world, _all_reduce)
    for op, expected in REDUCED.items():
        for shape in ((), (3,), (40, 50), (0,)):
            results = [each[op, shape] for each in found]
            for result in results:  # the same bits everywhere
                assert result.tobytes() == results[0].tobytes()
            values = [_numbers(rank, shape, np.float64) for rank in range(world)]
            np.testing.assert_allclose(results[0], expected(values), rtol=1e-5, atol=1e-6)
    total = sum(_numbers(rank, (40, 50), np.float64) for rank in range(world))
    for each in found:
        np.testing.assert_allclose(each["a transposed one"], total, rtol=1e-5, atol=1e-6)
        assert each["or"] == [3, 3] and each["bfloat16"] == [1.5 * world] * 2


def _collectives(rank: int, world: int) -> None:
    def here(value: Any) -> treadle.Tensor:
        return treadle.tensor([value, 10 * value])

    last = world - 1
    tensor = here(rank + 1)
    dist.broadcast(tensor, last)
    assert tensor.tolist() == [world, 10 * world]

    tensor = here(rank)
    dist.reduce(tensor, 1)
    total = sum(range(world))
    assert tensor.tolist() == ([total, 10 * total] if rank == 1 else [rank, 10 * rank])

    everything = [[r, 10 * r] for r in range(world)]
    places = [treadle.zeros(2, dtype=treadle.int64) for _ in range(world)]
    dist.all_gather(places, here(rank))
    assert [place.tolist() for place in places] == everything
    into = treadle.zeros(2 * world, dtype=treadle.int64)
    dist.all_gather_into_tensor(into, here(rank))
    assert into.tolist() == sum(everything, [])
    into = treadle.zeros(world, 2, dtype=treadle.int64)
    dist.all_gather_into_tensor(into, here(rank))
    assert into.tolist() == everything

    places = [treadle.zeros(2, dtype=treadle.int64) for _ in range(world)]
    dist.gather(here(rank), places if rank == last else None, dst=last)
    assert [p.tolist() for p in places] == (everything if rank == last else [[0, 0]] * world)

    tensor = here(0)
    dist.scatter(tensor, [here(r + 5) for r in range(world)] if rank == 0 else None, src=0)
    assert tensor.tolist() == [rank + 5, 10 * (rank + 5)]

    output = here(0)
    dist.reduce_scatter(output, [here(100 * rank + r) for r in range(world)])
    expected = sum(100 * r + rank for r in range(world))
    assert output.tolist() == [expected, 10 * expected]
    output = here(0)
    dist.reduce_scatter_tensor(output, treadle.cat([here(r) for r in range(world)]))
    assert output.tolist() == [world * rank, 10 * world * rank]

    outputs = [here(0) for _ in range(world)]
    dist.all_to_all(outputs, [here(10 * rank + r) for r in range(world)])
    assert [t[0].item() for t in outputs] == [10 * r + rank for r in range(world)]
    single = treadle.zeros(world, dtype=treadle.int64)
    dist.all_to_all_single(single, treadle.arange(world) + 10 * rank)
    assert single.tolist() == [10 * r + rank for r in range(world)]
    uneven = treadle.zeros(world * (rank + 1))
    sizes = [r + 1 for r in range(world)]
    dist.all_to_all_single(uneven, treadle.ones(sum(sizes)), [rank + 1] * world, sizes)
    assert uneven.tolist() == [1.0] * len(uneven)

    parameter = treadle.full((2,), float(rank), requires_grad=True)
    dist.broadcast(parameter, 0)
    assert parameter.tolist() == [0.0, 0.0] and parameter.is_leaf
    dist.barrier()
    dist.monitored_barrier(timeout=SOON)


@pytest.mark.parametrize("world", WORLDS)
def test_collective_functions(world: int) -> None:
    together(world, _collectives)


def _async(rank: int, world: int) -> None:
    tensors = [treadle.full((1000,), float(rank + i)) for i in range(5)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    now = treadle.ones(1)
    dist.all_reduce(now)  # beside the others
    for i, work in reversed(list(enumerate(works))):
        assert work.wait(SOON) and work.is_completed() and work.is_success()
        assert work.result()[0] is tensors[i] and work.get_future().value() == [tensors[i]]
        assert tensors[i][0].item() == sum(range(world)) + world * i
    assert now.item() == world
    gathered = [treadle.zeros(1) for _ in range(world)]
    dist.all_gather(gathered, treadle.ones(1) * rank, async_op=True).wait()
    assert [t.item() for t in gathered] == list(range(world))
    dist.barrier(async_op=True).wait()


@pytest.mark.parametrize("world", WORLDS)
def test_work_beside_the_program(world: int) -> None:
    together(world, _async)


def _point_to_point(rank: int, world: int) -> None:
    following, before = (rank + 1) % world, (rank - 1) % world
    for tag in (0, 7):
        mine, other = treadle.full((3,), float(rank + tag)), treadle.zeros(3)
        handle = dist.irecv(other, before, tag=tag)
        dist.send(mine, following, tag=tag)
        handle.wait()
        assert handle.is_completed() and other[0].item() == before + tag
    # Two receives, waited for in the other order, keep the order of the sends.
    for value in (1.0, 2.0):
        dist.isend(treadle.tensor(value), following).wait()
    first, second = treadle.zeros(()), treadle.zeros(())
    handles = [dist.irecv(first, before), dist.irecv(second, before)]
    for handle in reversed(handles):
        handle.wait()
    assert (first.item(), second.item()) == (1.0, 2.0)
    # From any process.
    if rank == 0:
        senders = set()
        for _ in range(1, world):
            got = treadle.zeros((), dtype=treadle.int64)
            senders.add(dist.recv(got, tag=3))
            assert got.item() in senders
        assert senders == set(range(1, world))
    else:
        dist.send(treadle.tensor(rank), 0, tag=3)
    other = treadle.zeros(1)
    operations = [
        dist.P2POp(dist.isend, treadle.ones(1) * rank, following),
        dist.P2POp(dist.irecv, other, before),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert other.item() == before


@pytest.mark.parametrize("world", WORLDS)
def test_send_and_receive(world: int) -> None:
    together(world, _point_to_point)


def _objects(rank: int, world: int) -> None:
    found: List[Any] = [None] * world
    dist.all_gather_object(found, {"rank": rank, "tensor": treadle.ones(rank)})
    assert [f["rank"] for f in found] == [len(f["tensor"]) for f in found] == list(range(world))
    values = [1, "two", [3]] if rank == 1 else [None] * 3
    dist.broadcast_object_list(values, src=1)
    assert values == [1, "two", [3]]
    found = [None] * world
    dist.gather_object(rank, found if rank == 0 else None, dst=0)
    assert found == (list(range(world)) if rank == 0 else [None] * world)
    mine = [None]
    dist.scatter_object_list(mine, [str(r) for r in range(world)] if rank == 0 else None)
    assert mine == [str(rank)]


@pytest.mark.parametrize("world", WORLDS)
def test_objects(world: int) -> None:
    together(world, _objects)


def _groups(rank: int, world: int) -> None:
    assert dist.group.WORLD is not None and dist.GroupMember.WORLD is dist.group.WORLD
    assert (dist.get_rank(), dist.get_world_size()) == (rank, world)
    assert dist.get_backend() == dist.Backend.GLOO == "gloo"
    pair = dist.new_group([0, 2])
    other = dist.new_group([1, 2], timeout=SOON)
    if rank == 1:
        assert pair == dist.GroupMember.NON_GROUP_MEMBER
        assert dist.get_rank(pair) == dist.get_world_size(pair) == -1
        with pytest.warns(UserWarning, match="not a member"):
            assert dist.all_reduce(treadle.ones(1), group=pair) is None
    else:
        assert (dist.get_rank(pair), dist.get_world_size(pair)) == (rank // 2, 2)
        assert dist.get_process_group_ranks(pair) == [0, 2]
        assert dist.get_global_rank(pair, 1) == 2 and dist.get_group_rank(pair, 2) == 1
        tensor = treadle.ones(1) * (rank + 1)
        dist.all_reduce(tensor, group=pair)
        assert tensor.item() == 4
        dist.broadcast(tensor.fill_(rank), src=2, group=pair)
        assert tensor.item() == 2
        dist.broadcast(tensor.fill_(rank), group=pair, group_src=0)
        assert tensor.item() == 0
        with pytest.raises(ValueError, match=r"expected a rank of the group \[0, 2\], got 1"):
            dist.broadcast(tensor, src=1, group=pair)
    if rank > 0:
        tensor = treadle.ones(1)
        dist.all_reduce(tensor, group=other)
        assert tensor.item() == 2
        dist.destroy_process_group(other)
    everybody = dist.new_group()
    tensor = treadle.ones(1)
    dist.all_reduce(tensor, group=everybody)
    assert tensor.item() == world


def test_groups() -> None:
    together(3, _groups)


# ---- Finding each other ----


def _sum_of_ranks(rank: int, init: Callable, *args: Any) -> Any:
    init(rank, *args)
    tensor = treadle.tensor([rank])
    dist.all_reduce(tensor)
    dist.destroy_process_group()
    return tensor.item()


def _init_each(world: int, init: Callable, *args: Any) -> List[Any]:
    """The sum of the ranks as each of them finds it; the last one begins."""
    ranks = reversed(range(world))
    return results([Child(_sum_of_ranks, rank, init, *args) for rank in ranks])


def _by_environment(rank: int) -> None:
    os.environ["RANK"] = str(rank)
    for _ in range(2):  # again, at the same port
        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group(timeout=SOON)
        assert dist.is_initialized()


def test_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with reserved_port() as port:
        monkeypatch.setenv("MASTER_PORT", str(port))
        assert _init_each(2, _by_environment) == [1, 1]


def _by_url(rank: int, url: str, world: int) -> None:
    dist.init_process_group("gloo", url, SOON, world, rank)


def test_file(tmp_path: Path) -> None:
    path = tmp_path / "shared"
    for _ in range(2):
        assert _init_each(3, _by_url, path.as_uri(), 3) == [3, 3, 3] and not path.exists()


def _by_store(rank: int, port: int) -> None:
    store = dist.TCPStore("127.0.0.1", port, 2, rank == 0, SOON)
    given = dist.PrefixStore("group", store)
    dist.init_process_group(store=given, rank=rank, world_size=2, timeout=SOON)
    dist.barrier()


def test_store_of_the_program() -> None:
    with reserved_port() as port:
        assert _init_each(2, _by_store, port) == [1, 1]


def test_one_process() -> None:
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    try:
        tensor = treadle.ones(3)
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        dist.barrier()
        assert tensor.tolist() == [1, 1, 1]
        with pytest.raises(ValueError, match="default process group twice"):
            dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()


BAD_STARTS: Any = {
    "ucc": ({"backend": "ucc"}, RuntimeError, r"there \(.*gloo.*\), got 'ucc'"),
    "nccl": (
        {"backend": "nccl"},
        RuntimeError,
        r"a device of CUDA, and NCCL \(libnccl.so.2\), for 'nccl', got none: ",
    ),
    "unknown": (
        {"backend": "smoke"},
        ValueError,
        r"a backend that is there \(.*gloo.*\), got 'smoke'",
    ),
    "rank": (
        {"init_method": "tcp://127.0.0.1:1", "world_size": 2, "rank": 2},
        (ValueError, dist.DistNetworkError),
        "expected",
    ),
    "no rank": ({"init_method": "tcp://127.0.0.1:1"}, ValueError, "expected rank for tcp://"),
    "no environment": ({}, ValueError, "expected RANK for env://, got none"),
    "scheme": (
        {"init_method": "mail://a", "rank": 0, "world_size": 1},
        RuntimeError,
        "expected env://, file://, tcp://, got 'mail://a'",
    ),
}


@pytest.mark.parametrize("case", BAD_STARTS)
def test_bad_starts(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    arguments, kind, message = BAD_STARTS[case]
    with pytest.raises(kind, match=message):
        dist.init_process_group(timeout=timedelta(seconds=0.2), **arguments)
    assert not dist.is_initialized()


def test_nobody_else_comes() -> None:
    start = time.monotonic()
    for rank, message in (
        (0, "expected rank 1 to join within 0.3 s"),
        (1, "expected a process that listens at"),
    ):
        with reserved_port() as port, pytest.raises(dist.DistNetworkError, match=message):
            url = f"tcp://127.0.0.1:{port}"
            dist.init_process_group("gloo", url, timedelta(seconds=0.3), 2, rank)
        assert not dist.is_initialized()
    assert time.monotonic() - start < 5


def test_before_the_start() -> None:
    assert dist.is_available() and dist.is_gloo_available() and not dist.is_initialized()
    assert not dist.is_nccl_available()
    for use in (dist.get_rank, dist.barrier, lambda: dist.all_reduce(treadle.ones(1))):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            use()


# ---- Mistakes and deaths ----


def _mistakes(rank: int, world: int) -> None:
    ones = treadle.ones(2)
    for use, kind, message in (
        (lambda: dist.all_reduce([1.0]), TypeError, "all_reduce: expected a tensor, got list"),
        (lambda: dist.all_reduce(ones.to("meta")), ValueError, "on the cpu, got meta"),
        (lambda: dist.all_reduce(ones, "sum"), TypeError, "expected op to be a ReduceOp, got str"),
        (lambda: dist.all_reduce(ones.long(), dist.ReduceOp.AVG), ValueError, "a floating dtype"),
        (lambda: dist.all_reduce(ones, dist.ReduceOp.BAND), ValueError, "an integer dtype"),
        (lambda: dist.broadcast(ones, 5), ValueError, r"a rank of the group \[0, 1\], got 5"),
        (lambda: dist.all_gather([ones], ones), ValueError, "to hold 2 tensors"),
        (lambda: dist.all_gather([ones.long()] * 2, ones), ValueError, "tensors of one dtype"),
        (lambda: dist.send(ones, rank), ValueError, "expected another process, got this one"),
        (lambda: dist.new_group([0, 0]), ValueError, "expected different ranks"),
        (
            lambda: dist.reduce_scatter_tensor(ones, treadle.ones(3)),
            ValueError,
            "2 times 2 elements",
        ),
        (lambda: dist.all_gather_object([None], 1), ValueError, "to have 2 items"),
    ):
        with pytest.raises(kind, match=message):
            use()
    # Calls that do not fit are not matched: no data arrives.
    first = rank == 0
    for use in (
        lambda t, g: dist.all_reduce(t[: 2 + rank], group=g),
        lambda t, g: dist.all_reduce(t if first else t.int(), group=g),
        lambda t, g: dist.all_reduce(t, dist.ReduceOp.MAX if first else dist.ReduceOp.SUM, g),
        lambda t, g: dist.broadcast(t, rank, g),
        lambda t, g: dist.broadcast(t, 0, g) if first else dist.all_reduce(t, group=g),
        lambda t, g: dist.all_gather([t[: 2 + rank], t[: 2 + rank]], t[: 2 + rank], g),
        lambda t, g: dist.send(t, 1, g) if first else dist.recv(t[:2], 0, g),
    ):
        group = dist.new_group()
        group.set_timeout(timedelta(seconds=0.2))
        tensor = treadle.full((5,), float(rank))
        with pytest.raises(dist.DistError, match="expected"):
            use(tensor, group)
            dist.barrier(group)  # a small message is on its way when send() returns
        assert tensor.tolist() == [rank] * 5
        dist.barrier()  # or the next call of the one rank would meet this one of the other
        with pytest.raises(dist.DistNetworkError, match="barrier: expected"):
            dist.barrier(group)
        dist.destroy_process_group(group)
    dist.barrier()


def test_mistakes() -> None:
    together(2, _mistakes)


def _waits_for_the_dead(rank: int, world: int) -> Any:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(dist.DistNetworkError) as raised:
        dist.all_reduce(treadle.ones(1))
    return str(raised.value), time.monotonic() - start


def test_a_dead_process_is_an_error() -> None:
    """Its connections are closed by the system."""
    with reserved_port() as port:
        url = f"tcp://127.0.0.1:{port}"
        first, second = (Child(joined, rank, 2, url, _waits_for_the_dead) for rank in range(2))
        assert second.end() == -signal.SIGKILL
        ((message, seconds),) = results([first])
    assert "all_reduce: expected" in message and "rank 1" in message and "gone" in message
    assert seconds < 5


def _silent(rank: int, world: int) -> Any:
    group = dist.new_group(timeout=timedelta(seconds=0.3))
    if rank == 1:
        dist.recv(treadle.zeros(1), 0)  # until the other has seen that nothing comes
        return None
    with pytest.raises(dist.DistNetworkError) as raised:
        dist.all_reduce(treadle.ones(1), group=group)
    dist.send(treadle.ones(1), 1)
    return str(raised.value)


def test_a_silent_process_is_an_error() -> None:
    message = together(2, _silent)[0]
    start = (
        "all_reduce: expected data from rank 1 within 0.3 s, got none\ncall 2 of group 1:\nrank 1"
    )
    assert message.startswith(f"{start} has not called it: its last call is 1, barrier(), ended ")


def _late(rank: int, world: int) -> Any:
    if rank == 1:
        dist.recv(treadle.zeros(1), 0)
        dist.send(treadle.full((2,), 5.0), 0)
        return None
    got = treadle.zeros(2)
    work = dist.irecv(got, 1)
    with pytest.raises(dist.DistNetworkError) as raised:
        work.wait(timedelta(seconds=0.2))
    assert not work.is_completed()
    dist.send(treadle.ones(1), 1)
    assert work.wait(SOON) and work.wait() and got.tolist() == [5, 5]
    return str(raised.value)


def test_a_receive_may_be_waited_for_again_after_a_timeout() -> None:
    assert together(2, _late)[0] == "wait: expected an end within 0.2 s, got none"


def _nobody_comes(rank: int, world: int) -> Any:
    if rank:
        dist.recv(treadle.zeros(1), 0)  # until the first has seen it
        return None
    found = []
    for wait_all in (False, True):
        with pytest.raises(dist.DistNetworkError) as raised:
            dist.monitored_barrier(timeout=timedelta(seconds=0.3), wait_all_ranks=wait_all)
        found.append(str(raised.value))
    for other in range(1, world):
        dist.send(treadle.ones(1), other)
    return found


def test_a_barrier_names_who_is_missing() -> None:
    assert together(3, _nobody_comes)[0] == [
        "monitored_barrier: expected rank 1 to come within 0.3 s, got nothing",
        "monitored_barrier: expected rank 1, 2 to come within 0.3 s, got nothing",
    ]


def _local_groups(rank: int, world: int) -> Any:
    # Each process makes the groups that it is in, and no others.
    found = []
    for ranks in ((0, 1), (1, 2), (0, 1)):
        if rank in ranks:
            group = dist.new_group(ranks, use_local_synchronization=True)
            x = treadle.tensor(float(rank + 1))
            dist.all_reduce(x, group=group)
            found.append(x.item())
    return found


def test_groups_that_their_members_make_alone() -> None:
    assert together(3, _local_groups) == [[3, 3], [3, 5, 3], [5]]


def test_options_that_are_not_there() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        for call, message in (
            (
                lambda: dist.barrier(device_ids=[0]),
                "barrier: expected no device_ids on the cpu, got [0]",
            ),
            (
                lambda: dist.broadcast_object_list([1], 0, device="meta"),
                "broadcast_object_list: expected device on the cpu, got meta",
            ),
            (
                lambda: dist.new_group([0], pg_options={}),
                "new_group: expected no pg_options, as cpu:gloo has none, got dict",
            ),
            (
                lambda: dist.new_group([0], device_id=treadle.device("meta")),
                "new_group: expected device_id on the cpu or None, got meta",
            ),
        ):
            with pytest.raises(ValueError) as raised:
                call()
            assert str(raised.value) == message
    finally:
        dist.destroy_process_group()
