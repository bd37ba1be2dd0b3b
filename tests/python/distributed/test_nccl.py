"""Groups over NCCL, with a stand-in for it and for the devices (support/nccl_stand_in.cc)."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
import ctypes.util
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, Callable, List

import pytest
import test_collective_matrix as matrix

import treadle
import treadle.distributed as dist
from child_processes import Child, results
from plugins import build_file, build_minimal
from process_groups import SOON, reserved_port
from source_tree import SUPPORT

SHORT = timedelta(seconds=1)
DEVICE = "cuda"


def build(target: Path, *flags: str) -> str:
    flags = ("-pthread", "-Wl,-soname,libnccl.so.2", *flags)
    return build_file(target, SUPPORT / "nccl_stand_in.cc", flags=flags)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build(tmp_path_factory.mktemp("nccl") / "libnccl.so.2")


def joined(library: str, rank: int, world: int, url: str, function: Callable, options: Any) -> Any:
    """In a child: the result of the function in a group."""
    treadle.set_num_threads(1)
    treadle.load_backend(library)
    assert dist.is_nccl_available()
    with pytest.MonkeyPatch.context() as patch:
        from treadle.distributed import _faults

        patch.setattr(_faults, "_ANSWER_SECONDS", 0.8)
        options = {"backend": "nccl", "timeout": SOON, **options}
        dist.init_process_group(init_method=url, world_size=world, rank=rank, **options)
        result = function(rank, world)
        if dist.is_initialized():
            dist.destroy_process_group()
    return result


def children(library: str, world: int, function: Callable, url: str, options: Any) -> List[Child]:
    return [Child(joined, library, r, world, url, function, options) for r in range(world)]


def together(library: str, world: int, function: Callable, **options: Any) -> List[Any]:
    """The result of the function in each of so many processes of a group over NCCL."""
    with reserved_port() as port:
        return results(children(library, world, function, f"tcp://127.0.0.1:{port}", options))


def on(values: Any, **options: Any) -> treadle.Tensor:
    return treadle.tensor(values, **options).to(DEVICE)


# ---- Values ----


class NcclMatrix(matrix.Matrix):
    reduced = [name for name in matrix.Matrix.reduced if name not in ("int16", "uint16")]
    steps = ("SUM", "PRODUCT", "MIN", "MAX")
    of_complex = ("SUM",)


def _matrix(rank: int, world: int) -> str:
    matrix.device = DEVICE
    treadle.set_default_device(DEVICE)
    return NcclMatrix(rank, world).run(30_000, in_full=False)


@pytest.mark.parametrize("world", [1, 2, 3])
def test_every_function(world: int, library: str) -> None:
    assert len(set(together(library, world, _matrix))) == 1


def _coalesced(rank: int, world: int) -> None:
    tensors = [treadle.full((n,), rank + 1.0, device=DEVICE) for n in (1, 5, 3)]
    dist.all_reduce_coalesced(tensors)
    assert [t.tolist() for t in tensors] == [[3.0] * n for n in (1, 5, 3)]
    with dist._coalescing_manager(async_ops=True) as several:
        for tensor in tensors:
            dist.all_reduce(tensor, dist.ReduceOp.MAX)
    several.wait()
    assert [t.tolist() for t in tensors] == [[3.0] * n for n in (1, 5, 3)]
    found: List[Any] = [None] * world
    dist.all_gather_object(found, {"rank": rank})
    assert found == [{"rank": 0}, {"rank": 1}]


def test_several_tensors_in_one_call(library: str) -> None:
    together(library, 2, _coalesced)


def _groups(rank: int, world: int) -> None:
    pair = dist.new_group([0, 2])
    if rank != 1:
        one = on([float(rank)])
        dist.all_reduce(one, group=pair)
        assert one.tolist() == [2.0]
    half = dist.split_group(split_ranks=[[0, 1], [2]])
    one = on([1.0])
    dist.all_reduce(one, group=half)
    assert one.tolist() == [1.0 if rank == 2 else 2.0]
    assert dist.get_backend(half) == "nccl"


def test_smaller_groups(library: str) -> None:
    together(library, 3, _groups)


def _both(rank: int, world: int) -> None:
    here, there = treadle.tensor([rank + 1]), on([rank + 1])
    dist.all_reduce(here)
    dist.all_reduce(there)
    assert here.tolist() == there.tolist() == [3] and there.device.type == DEVICE
    assert dist.get_backend_config() == "cpu:gloo,cuda:nccl"
    assert dist.distributed_c10d._get_default_group().bound_device_id.index == 1


def test_one_engine_for_each_kind_of_device(library: str) -> None:
    options = {"backend": "cpu:gloo,cuda:nccl", "device_id": treadle.device("cuda:1")}
    with pytest.raises(AssertionError, match=r"expected tensors on cuda:1.*got cuda:0"):
        together(library, 2, _both, **options)


# ---- Messages ----


def _messages(rank: int, world: int) -> None:
    other = 1 - rank
    # Both send first.
    place, given = treadle.zeros(3, device=DEVICE), on([float(rank)] * 3)
    handles = [dist.isend(given, other), dist.irecv(place, other)]
    for handle in handles:
        handle.wait()
    assert place.tolist() == [float(other)] * 3
    places = [treadle.zeros(n, dtype=treadle.int32, device=DEVICE) for n in (70_000, 1)]
    ops = [
        dist.P2POp(dist.irecv, places[0], other),
        dist.P2POp(dist.isend, on([rank] * 70_000).int(), other),
        dist.P2POp(dist.isend, on([7 + rank]).int(), other, tag=1),
        dist.P2POp(dist.irecv, places[1], other, tag=1),
    ]
    for handle in dist.batch_isend_irecv(ops):
        handle.wait()
    assert places[0].eq(other).all() and places[1].tolist() == [7 + other]
    apart = treadle.zeros(2, 3, device=DEVICE).t()
    work = dist.irecv(apart, other)
    dist.isend(on([[1.0, 2], [3, 4], [5, 6]]), other).wait()
    work.wait()
    assert apart.tolist() == [[1.0, 2], [3, 4], [5, 6]]
    with pytest.raises(ValueError, match="recv: expected src, as nccl receives from one rank"):
        dist.recv(place)
    with pytest.raises(dist.DistBackendError, match=f"rank {other} .*the same call"):
        (dist.send if rank else dist.recv)(treadle.zeros(2 + rank, device=DEVICE), other)


def test_messages(library: str) -> None:
    together(library, 2, _messages)


# ---- The order of a device's work ----


def _order(rank: int, world: int) -> None:
    library = ctypes.CDLL("libnccl.so.2")
    write = library.stand_in_write
    write.argtypes = [ctypes.c_void_p, ctypes.c_float, ctypes.c_int]
    for later in (False, True):
        one = treadle.zeros(1, device=DEVICE)
        write(one.data_ptr(), rank + 1.0, 200)  # when the call begins, it is not yet done
        work = dist.all_reduce(one, async_op=later)
        if later:
            assert not work.is_completed()
            work.wait()
        assert one.tolist() == [3.0]
    one = treadle.zeros(1, device=DEVICE)
    write(one.data_ptr(), 5.0, 200)
    dist.barrier()
    assert ctypes.c_float.from_address(one.data_ptr()).value == 5.0


def test_calls_come_after_the_work_before_them(library: str) -> None:
    together(library, 2, _order)


# ---- Mistakes and faults ----


def _mistakes(rank: int, world: int) -> None:
    one = on([1, 2])
    group = dist.distributed_c10d._get_default_group()
    for use, message in (
        (
            lambda: dist.all_reduce(one, dist.ReduceOp.BAND),
            "nccl has, got ReduceOp.BAND of .*int64",
        ),
        (lambda: dist.all_reduce(one.short()), "nccl has, got ReduceOp.SUM of .*int16"),
        (lambda: dist.all_reduce(one.to(treadle.float8_e5m2)), "nccl has, got .*float8_e5m2"),
        (lambda: dist.all_reduce(treadle.ones(1)), "expected a tensor on the cuda, got cpu"),
        (lambda: group.allreduce([treadle.ones(1)]), "expected tensors on cuda for nccl, got cpu"),
        (lambda: group.send([treadle.ones(1)], 1 - rank, 0), "expected tensors on cuda for nccl"),
    ):
        with pytest.raises(ValueError, match=message):
            use()
    dist.all_reduce(one)
    with pytest.raises(dist.DistBackendError, match="cuda:0, the device of this process"):
        dist.all_reduce(one.to("cuda:1"))
    other = 1 - rank
    first = rank == 0
    for use in (
        lambda g: dist.all_reduce(one[: 1 + rank], group=g),
        lambda g: dist.all_reduce(one if first else one.int(), group=g),
        lambda g: dist.broadcast(one, 0, g) if first else dist.all_reduce(one, group=g),
        lambda g: dist.all_to_all([one, one + 1], [one + 1, one[: 1 + rank].clone()], g),
        lambda g: dist.all_gather([one.clone(), one[: 2 - rank].clone()], one, g),
    ):
        group = dist.new_group()
        with pytest.raises(dist.DistBackendError, match=f"rank {other} to make the same call"):
            use(group)


def test_mistakes(library: str) -> None:
    together(library, 2, _mistakes)


def _absent(rank: int, world: int) -> Any:
    one = on([1.0])
    dist.all_reduce(one)
    start = time.monotonic()
    if rank == 1:
        time.sleep(3.5)
        return []
    texts = []
    for _ in range(2):
        with pytest.raises(dist.DistNetworkError) as raised:
            dist.all_reduce(one)
        texts.append(str(raised.value))
    assert 0.9 < time.monotonic() - start < 3.4
    return texts


def test_a_rank_that_does_not_come_has_a_name(library: str) -> None:
    first, second = together(library, 2, _absent, timeout=SHORT)[0]
    assert first.startswith("all_reduce: expected data from rank 1 within 1 s, got none")
    assert "rank 1 has not called it" in first and "rank 1 has not called it" in second


def _no_receiver(rank: int, world: int) -> None:
    if rank == 1:
        time.sleep(2)
        return
    with pytest.raises(dist.DistNetworkError, match="expected rank 1 to take data within 1 s"):
        dist.send(on([1.0]), 1)


def test_a_rank_that_does_not_receive_has_a_name(library: str) -> None:
    together(library, 2, _no_receiver, timeout=SHORT)


def _hangs(rank: int, world: int) -> None:
    one = on([1.0])
    dist.all_reduce(one)
    if rank == 1:
        ctypes.CDLL("libnccl.so.2").stand_in_hang()
    # The rank whose time is up first ends the connection, which the other may see before its own.
    with pytest.raises(dist.DistError, match="within 1 s, got none|remote process exited"):
        dist.all_reduce(one)


def test_a_call_that_hangs_in_nccl_ends(library: str) -> None:
    together(library, 2, _hangs, timeout=SHORT)


def _dies(rank: int, world: int) -> Any:
    one = on([1.0])
    dist.all_reduce(one)
    if rank == 1:
        ctypes.CDLL("libnccl.so.2").stand_in_die()
    with pytest.raises(dist.DistNetworkError) as raised:
        dist.all_reduce(one)
    return str(raised.value)


def test_a_rank_that_dies_in_a_call_has_a_name(library: str) -> None:
    with reserved_port() as port:
        first, second = children(library, 2, _dies, f"tcp://127.0.0.1:{port}", {})
        text = first.result()
        assert text.startswith("all_reduce: expected data from rank 1, but it is gone")
        with pytest.raises(AssertionError):
            second.result()


def _aborts(rank: int, world: int) -> None:
    one = on([1.0])
    dist.all_reduce(one)
    group = dist.distributed_c10d._get_default_group()
    if rank == 1:
        ctypes.CDLL("libnccl.so.2").stand_in_hang()
    work = dist.all_reduce(one, async_op=True)
    time.sleep(0.3)
    assert not work.is_completed()
    # Rank 1 hangs in NCCL and does not see that rank 0 is gone; the other way round it would.
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.wait(["rank 0 has aborted"])
    group.abort()
    with pytest.raises(dist.DistNetworkError, match="it was aborted"):
        work.wait()
    with pytest.raises(dist.DistNetworkError, match="it was aborted"):
        dist.all_reduce(one)
    if rank == 0:
        store.set("rank 0 has aborted", "")


def test_an_abort_ends_calls(library: str) -> None:
    together(library, 2, _aborts)


# ---- What is there ----


def _without_nccl(device: str) -> None:
    treadle.load_backend(device)
    assert treadle.cuda.is_available() and not dist.is_nccl_available()
    with pytest.raises(RuntimeError, match=r"expected NCCL \(libnccl.so.2\) in .*, got none"):
        dist.init_process_group("nccl", rank=0, world_size=1, store=dist.HashStore())
    assert dist.BackendConfig(None).get_device_backend_map() == {"cpu": "gloo"}


@pytest.mark.skipif(
    ctypes.util.find_library("nccl") is not None, reason="this system has a library of NCCL"
)
def test_a_device_without_nccl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    Child(_without_nccl, build_minimal(tmp_path / "cuda.so", name="cuda")).result()


def _old(library: str) -> None:
    treadle.load_backend(library)
    assert not dist.is_nccl_available()
    with pytest.raises(RuntimeError, match="function ncclCommInitRankConfig, got release 2.10.3"):
        dist.init_process_group("nccl", rank=0, world_size=1, store=dist.HashStore())


def test_an_old_release_says_what_it_lacks(tmp_path: Path) -> None:
    Child(_old, build(tmp_path / "libnccl.so.2", "-DOLD_RELEASE")).result()


def _devices(rank: int, world: int) -> None:
    dist.destroy_process_group()
    for device, message in (
        (treadle.device("cuda"), "the number of a device that is there, got cuda"),
        (treadle.device("cuda:7"), "the number of a device that is there, got cuda:7"),
        (treadle.device("cpu"), "expected device_id on the cuda or None, got cpu"),
    ):
        with pytest.raises(ValueError, match=message):
            dist.init_process_group("nccl", rank=0, world_size=1, device_id=device)
    store = dist.HashStore()
    dist.init_process_group(rank=0, world_size=1, store=store, device_id=treadle.device("cuda:1"))
    assert dist.get_backend() == "nccl"
    assert dist.distributed_c10d._get_default_group().timeout == timedelta(minutes=10)
    one = treadle.ones(1, device="cuda:1")
    dist.all_reduce(one)
    assert one.tolist() == [1.0]


def test_device_id(library: str) -> None:
    together(library, 1, _devices)
