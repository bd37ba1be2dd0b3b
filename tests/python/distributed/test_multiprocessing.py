"""Tensors in several processes: one memory, whatever they came through, and nothing left of it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from typing import Any, Iterator

import pytest

import treadle
import treadle.multiprocessing as mp
from processes import is_running
from treadle import nn

METHODS = ("fork", "spawn")
# Where one way to start stands for both, the slower one is left for the long run.
LARGE = 16 << 20  # elements: 64 MB of float32
# Built with the sanitizers every block comes from malloc, and stays until its storage dies.
with open("/proc/self/maps") as _lines:
    SANITIZED = "libasan" in _lines.read()
# A forked process has the sanitizer's allocator as it was: where another thread had its lock, for
# ever. So there, processes are spawned.
FORK = "spawn" if SANITIZED else "fork"
FORK_FIRST = ("spawn",) if SANITIZED else ("fork", pytest.param("spawn", marks=pytest.mark.slow))


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After each test: no process, no shared memory, no descriptor of one, no file."""
    files = shared_files()
    yield
    gc.collect()
    for process in multiprocessing.active_children():
        process.join(5)
    end = time.monotonic() + 5
    while (mappings() or descriptors()) and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)  # a queue's thread is ending
    assert not multiprocessing.active_children()
    assert mappings() == descriptors() == []
    # Semaphores of `multiprocessing` have names for a moment.
    assert {f for f in shared_files() - files if not f.startswith("sem.")} == set()


def shared_files() -> set[str]:
    """The files of shared memory. Folders beside them are those of other programs, as Bazel."""
    return {entry.name for entry in os.scandir("/dev/shm") if not entry.is_dir()}


def mappings(pid: Any = "self") -> list[str]:
    with open(f"/proc/{pid}/maps") as lines:
        return [line for line in lines if "memfd:treadle" in line]


def descriptors() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            pass  # the descriptor of the folder itself
    return [name for name in found if "memfd:treadle" in name]


def inode(t: treadle.Tensor) -> int:
    """The inode of the file that the tensor's memory is; 0 for memory that is no file."""
    address = t.data_ptr()
    with open("/proc/self/maps") as lines:
        for line in lines:
            span, _, _, _, number, *_ = line.split()
            begin, end = (int(part, 16) for part in span.split("-"))
            if begin <= address < end:
                return int(number)
    raise AssertionError("the tensor is nowhere")


def resident(kind: str) -> int:
    """Bytes of this process's memory: RssAnon is its own, RssShmem what it shares."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(kind))


def answer(queue: Any, process: Any) -> Any:
    """The answer that the process puts into the queue; fails if it ends without."""
    while queue.empty():
        assert process.is_alive() or not queue.empty(), f"it ended with {process.exitcode}"
        time.sleep(0.001)
    return queue.get()


def run(method: str, target: Any, *args: Any) -> None:
    """Run a function in a process and wait for it."""
    process = mp.get_context(method).Process(target=target, args=args)
    process.start()
    process.join(60)
    assert process.exitcode == 0


# ---- sharing within a process ------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 1000, 100_000])
def test_memory_moves_for_all_views(count: int) -> None:
    base = treadle.arange(count * 2).float()
    view, array = base[1::2], base.numpy()
    assert not base.is_shared() and inode(base) == 0
    assert base.share_memory_() is base
    assert base.is_shared() and view.is_shared() and inode(view) != 0
    view += 1
    assert base[:2].tolist() == [0.0, 2.0]
    assert array[-1] in (2 * count, 2 * count - 1)  # an array made before can still be read
    assert base.share_memory_().data_ptr() == base.data_ptr()


def test_arrays_of_large_tensors_stay_on_the_memory() -> None:
    t = treadle.zeros(100_000)
    array, address = t.numpy(), t.data_ptr()
    t.share_memory_()
    t[7] = 7
    assert SANITIZED or (array[7] == 7 and t.data_ptr() == address)


def test_storages() -> None:
    storage = treadle.arange(4).untyped_storage()
    assert not storage.is_shared()
    descriptor, nbytes = storage._share_fd_cpu_()
    assert storage.is_shared() and nbytes == 32
    same = treadle.UntypedStorage._new_shared_fd_cpu(os.dup(descriptor), nbytes)
    assert same == storage and same.data_ptr() == storage.data_ptr()
    fresh = treadle.UntypedStorage._new_using_fd_cpu(16)
    assert fresh.is_shared() and fresh.nbytes() == 16
    t = treadle.empty(0, dtype=treadle.int32).set_(fresh)
    assert t.tolist() == [0] * 4 and t.is_shared()
    with pytest.raises(RuntimeError, match="can be resized"):
        storage.resize_(64)
    with pytest.raises(RuntimeError, match="at least 64 bytes"):
        treadle.UntypedStorage._new_shared_fd_cpu(os.dup(descriptor), 64)
    with pytest.raises(ValueError, match="size >= 0"):
        treadle.UntypedStorage._new_using_fd_cpu(-1)
    with pytest.raises(RuntimeError, match="memory on the cpu"):
        treadle.empty(3, device="meta").untyped_storage().share_memory_()


def test_modules_share_their_parameters_and_buffers() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    assert model.share_memory() is model
    assert all(t.is_shared() for t in model.state_dict().values())
    assert model[0].weight.requires_grad and isinstance(model[0].weight, nn.Parameter)


def test_names_of_the_standard_library() -> None:
    for name in multiprocessing.__all__:
        assert hasattr(mp, name), name
    assert mp.get_start_method() == multiprocessing.get_start_method()
    assert mp.get_context("spawn").get_start_method() == "spawn"
    assert mp.get_context().get_start_method() == mp.get_start_method()
    with pytest.raises(ValueError, match="cannot find context"):
        mp.get_context("teleport")
    assert mp.get_sharing_strategy() == "file_descriptor"
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError):
        mp.set_sharing_strategy("telepathy")


# ---- what arrives ------------------------------------------------------------------------------


def through_a_pipe(value: Any) -> Any:
    here, there = mp.Pipe(duplex=False)
    there.send(value)
    return here.recv()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "bfloat16", "float64", "complex64"])
def test_dtypes(dtype: str) -> None:
    t = (treadle.arange(6) % 2).to(getattr(treadle, dtype)).reshape(2, 3)
    same = through_a_pipe(t)
    assert same.dtype == t.dtype and treadle.equal(same, t)
    same.fill_(1)
    assert treadle.equal(same, t)


def test_kinds_of_tensors() -> None:
    base = treadle.arange(24.0)
    values = {
        "transposed": base.reshape(4, 6).t(),
        "every second": base[1::2],
        "flipped copy": base.flip(0),
        "number": treadle.tensor(3),
        "empty": treadle.empty(0, 3),
        "expanded": treadle.tensor([1.0]).expand(3),
        "leaf": treadle.ones(2, requires_grad=True),
        "detached": (treadle.ones(2, requires_grad=True) * 2).detach(),
        "meta": treadle.empty(2, 3, device="meta"),
        "parameter": nn.Parameter(treadle.rand(2)),
        "frozen": nn.Parameter(treadle.rand(2), requires_grad=False),
        "buffer": nn.Buffer(treadle.rand(2), persistent=False),
        "storage": treadle.arange(3).untyped_storage(),
    }
    same = through_a_pipe(values)
    for name, value in values.items():
        got = same[name]
        assert type(got) is type(value), name
        if name == "storage":
            assert bytes(got) == bytes(value)
            continue
        assert got.shape == value.shape and got.stride() == value.stride(), name
        assert got.requires_grad == value.requires_grad and got.device == value.device, name
        assert name == "meta" or treadle.equal(got, value), name
    assert same["buffer"].persistent is False
    assert same["transposed"].data_ptr() == values["transposed"].data_ptr()


def test_what_shares_memory_still_does() -> None:
    base = treadle.zeros(6)
    a, b, whole = through_a_pipe([base[:3], base[2:], base])
    a[2] = 5
    assert b[0].item() == whole[2].item() == base[2].item() == 5
    assert a.untyped_storage() == b.untyped_storage() == base.untyped_storage()


def test_a_module() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    same = through_a_pipe(model)
    for a, b in zip(model.state_dict().values(), same.state_dict().values()):
        assert a.data_ptr() == b.data_ptr()
    with treadle.no_grad():
        same[0].weight.fill_(3)
    assert (model[0].weight == 3).all()


def test_results_with_a_history_are_refused() -> None:
    y = treadle.ones(2, requires_grad=True) * 2
    here, there = mp.Pipe()
    with pytest.raises(RuntimeError, match="leaf of the autograd graph"):
        there.send([treadle.ones(3), y])
    there.send("and then?")
    assert here.recv() == "and then?"


def test_many_tensors_in_one_message() -> None:
    count = 600
    got = through_a_pipe([treadle.tensor([i]) for i in range(count)])
    assert [t.item() for t in got] == list(range(count))


def test_no_descriptors_are_free() -> None:
    import resource

    here, there = mp.Pipe(duplex=False)
    tensors = [treadle.tensor([i]) for i in range(40)]
    there.send(tensors)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 9, limits[1]))
    try:
        with pytest.raises(OSError, match="too many files open"):
            here.recv()
        with pytest.raises(RuntimeError, match="Too many open files"):
            [treadle.ones(1).share_memory_() for _ in range(40)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    there.send(treadle.ones(2))
    assert here.recv().tolist() == [1, 1]


def test_bytes_through_a_connection() -> None:
    here, there = mp.Pipe()
    for message in (b"", b"short", bytes(100_000)):
        thread = threading.Thread(target=there.send_bytes, args=(message,))
        thread.start()
        assert here.recv_bytes() == message
        thread.join()
    assert not here.poll(0)
    there.send(1)
    assert here.poll(1) and here.recv() == 1
    there.close()
    with pytest.raises(EOFError):
        here.recv()
    with pytest.raises(OSError, match="closed"):
        there.send(1)


# ---- other processes ---------------------------------------------------------------------------


def add_one(queue: Any, answers: Any) -> None:
    t = queue.get()
    t += 1
    answers.put((inode(t), t.is_shared()))


@pytest.mark.parametrize("method", FORK_FIRST)
@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue", "SimpleQueue"])
def test_through_queues(method: str, kind: str) -> None:
    context = mp.get_context(method)
    queue, answers = getattr(context, kind)(), getattr(context, kind)()
    process = context.Process(target=add_one, args=(queue, answers))
    process.start()
    x = treadle.zeros(4)
    queue.put(x)
    assert answer(answers, process) == (inode(x), True)
    assert x.tolist() == [1.0] * 4
    process.join()


def write_and_wait(t: treadle.Tensor, model: nn.Module, end: Any) -> None:
    t[0] = 1
    end.send("written")
    assert end.recv() == "answered"
    assert t[1] == 2 and (model.weight == 3).all()
    with treadle.no_grad():
        model.weight.add_(1)
    assert model.weight.requires_grad and type(model.weight) is nn.Parameter


@pytest.mark.parametrize("method", METHODS)
def test_as_arguments_seen_both_ways(method: str) -> None:
    here, there = mp.get_context(method).Pipe()
    t, model = treadle.zeros(2).share_memory_(), nn.Linear(2, 2).share_memory()
    process = mp.get_context(method).Process(target=write_and_wait, args=(t, model, there))
    process.start()
    there.close()  # if the process dies, recv() says so
    assert here.recv() == "written" and t[0] == 1
    t[1] = 2
    with treadle.no_grad():
        model.weight.fill_(3)
    here.send("answered")
    process.join(60)
    assert process.exitcode == 0
    assert (model.weight == 4).all()


def look_at(large: treadle.Tensor, view: treadle.Tensor, end: Any) -> None:
    own = resident("RssAnon")
    total = large.sum(dtype=treadle.float64).item()
    end.send((inode(large), inode(view), total, resident("RssAnon") - own, resident("RssShmem")))


@pytest.mark.parametrize("method", METHODS)
def test_64_megabytes_are_not_copied(method: str) -> None:
    large = treadle.ones(LARGE)
    large.share_memory_()
    here, there = mp.get_context(method).Pipe()
    run(method, look_at, large, large[5:], there)
    first, second, total, grown, shared = here.recv()
    assert first == second == inode(large) and total == LARGE
    assert grown < 16 << 20 and shared >= LARGE * 4


def test_sharing_leaves_one_copy() -> None:
    before = resident("RssAnon"), resident("RssShmem")
    large = treadle.ones(LARGE)
    large.share_memory_()
    assert large.sum(dtype=treadle.float64).item() == LARGE
    assert resident("RssAnon") - before[0] < (16 << 20) + SANITIZED * LARGE * 4
    assert resident("RssShmem") - before[1] >= LARGE * 4
    del large
    assert resident("RssShmem") - before[1] < 1 << 20


def produce(queue: Any, count: int) -> None:
    for i in range(count):
        queue.put((i, treadle.full((1000,), i)))


@pytest.mark.parametrize("method", FORK_FIRST)
def test_the_sender_may_end_first(method: str) -> None:
    queue = mp.get_context(method).SimpleQueue()
    run(method, produce, queue, 20)
    for i in range(20):
        number, t = queue.get()
        assert number == i and (t == i).all()


def echo(queue: Any, answers: Any, count: int) -> None:
    for _ in range(count):
        i, t = queue.get()
        assert (t == i).all()
        answers.put((i, t, t * 2))


def test_many_senders_and_receivers() -> None:
    """Descriptors and messages stay together whoever reads and writes."""
    context, count = mp.get_context(FORK), 50
    queue, answers = context.Queue(), context.Queue()
    processes = [context.Process(target=echo, args=(queue, answers, count)) for _ in range(3)]
    processes += [context.Process(target=produce, args=(queue, count)) for _ in range(3)]
    for process in processes:
        process.start()
    got: list = []

    def receive() -> None:
        while True:
            i, t, double = answers.get()
            if i < 0:
                return
            got.append(i)
            assert (t == i).all() and (double == 2 * i).all()

    threads = [threading.Thread(target=receive) for _ in range(2)]
    for thread in threads:
        thread.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    for _ in threads:
        answers.put((-1, None, None))
    for thread in threads:
        thread.join()
    assert sorted(got) == sorted(list(range(count)) * 3)


def double(t: treadle.Tensor) -> treadle.Tensor:
    t.mul_(2)
    return t + 1


@pytest.mark.parametrize("method", FORK_FIRST)
def test_pool(method: str) -> None:
    tensors = [treadle.full((3,), float(i)) for i in range(8)]
    with mp.get_context(method).Pool(2) as pool:
        results = pool.map(double, tensors)
    assert [t[0].item() for t in results] == [2 * i + 1 for i in range(8)]
    assert [t[0].item() for t in tensors] == [2 * i for i in range(8)]
    with mp.Pool(1) as pool:
        assert pool.apply(double, (treadle.ones(2),)).tolist() == [3, 3]
        pool.close()
        pool.join()


def test_queues_of_the_standard_library() -> None:
    context = multiprocessing.get_context("spawn")
    queue, answers = context.Queue(), context.Queue()
    process = context.Process(target=add_one, args=(queue, answers))
    process.start()
    x = treadle.zeros(4)
    queue.put(x)
    assert answer(answers, process) == (inode(x), True)
    process.join()
    assert x.tolist() == [1.0] * 4


def hold(t: treadle.Tensor, end: Any) -> None:
    end.send(len(mappings()))
    time.sleep(60)


@pytest.mark.parametrize("method", FORK_FIRST)
def test_a_killed_process_leaves_nothing(method: str) -> None:
    here, there = mp.get_context(method).Pipe()
    t = treadle.zeros(1000).share_memory_()
    process = mp.get_context(method).Process(target=hold, args=(t, there))
    process.start()
    there.close()
    assert here.recv() == 1
    assert mappings(process.pid)
    process.kill()
    process.join()
    t += 1
    assert t.sum() == 1000


def train(model: nn.Module, rank: int, done: treadle.Tensor) -> None:
    treadle.manual_seed(rank)
    optimizer = treadle.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(300):
        x = treadle.randn(16, 3)
        optimizer.zero_grad()
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        loss.backward()
        optimizer.step()
    done[rank] = 1


@pytest.mark.parametrize("method", FORK_FIRST)
def test_hogwild(method: str) -> None:
    """Two processes train one model without asking each other."""
    model, done = nn.Linear(3, 1).share_memory(), treadle.zeros(2).share_memory_()
    context = mp.get_context(method)
    processes = [context.Process(target=train, args=(model, r, done)) for r in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert done.tolist() == [1, 1]
    treadle.testing.assert_close(model.weight, treadle.ones(1, 3), atol=1e-3, rtol=0)


# ---- spawn -------------------------------------------------------------------------------------


def write_rank(rank: int, t: treadle.Tensor) -> None:
    t[rank] = rank + 1


def fail_at_one(rank: int) -> None:
    if rank == 1:
        raise ValueError("one is too many")
    time.sleep(60)


def leave_with(rank: int, code: int) -> None:
    if rank == 0:
        os._exit(code) if code >= 0 else os.kill(os.getpid(), -code)
    time.sleep(60)


def interrupted(rank: int) -> None:
    raise KeyboardInterrupt


def test_spawn() -> None:
    t = treadle.zeros(3).share_memory_()
    assert mp.spawn(write_rank, args=(t,), nprocs=2) is None
    assert t.tolist() == [1, 2, 0]
    started = mp.start_processes(write_rank, (t.zero_(),), 2, join=False, start_method="fork")
    assert len(started.pids()) == 2
    while not started.join(timeout=5):
        pass
    assert t.tolist() == [1, 2, 0] and started.join()
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        mp.spawn(interrupted, nprocs=1, start_method="fork")


def test_an_exception_in_a_spawned_process() -> None:
    began = time.monotonic()
    with pytest.raises(mp.ProcessRaisedException) as caught:
        mp.start_processes(fail_at_one, nprocs=3, start_method="fork")
    assert time.monotonic() - began < 10
    error = caught.value
    assert error.error_index == 1 and error.pid > 0
    assert "Process 1 terminated with the following error" in str(error)
    assert "ValueError: one is too many" in str(error) and "fail_at_one" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.error_index == 1


@pytest.mark.parametrize("code", [3, -signal.SIGKILL])
def test_a_spawned_process_that_leaves(code: int) -> None:
    with pytest.raises(mp.ProcessExitedException) as caught:
        mp.start_processes(leave_with, (code,), nprocs=2, start_method="fork")
    error = caught.value
    assert error.exit_code == code and error.error_index == 0
    if code < 0:
        assert error.signal_name == "SIGKILL" and "terminated with signal SIGKILL" in str(error)
    else:
        assert "terminated with exit code 3" in str(error)
    assert pickle.loads(pickle.dumps(error)).exit_code == code


def test_processes_that_cannot_be_started() -> None:
    before = os.listdir(tempfile.gettempdir())
    with pytest.raises((AttributeError, pickle.PicklingError)):
        mp.start_processes(lambda rank: None, nprocs=2)
    assert not multiprocessing.active_children()
    left = set(os.listdir(tempfile.gettempdir())) - set(before)
    assert not any(name.startswith("treadle-process-") for name in left)


def test_processes_end_with_the_one_that_spawned_them() -> None:
    program = textwrap.dedent(
        """
        import time
        import treadle.multiprocessing as mp
        started = mp.start_processes(time.sleep, (), 2, join=False, start_method="fork")
        print(*started.pids(), flush=True)
        time.sleep(60)
        """
    ).replace("time.sleep, ()", "lambda rank: time.sleep(60), ()")
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2 and all(os.path.exists(f"/proc/{pid}") for pid in pids)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + 30
    while any(is_running(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(is_running(pid) for pid in pids)


# ---- what cannot be sent -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Queue", "JoinableQueue", "SimpleQueue"])
def test_what_cannot_be_sent_raises_where_it_is_put(kind: str) -> None:
    queue = getattr(mp, kind)()
    for item, error in (
        ([treadle.ones(2, requires_grad=True) * 2], "expected a leaf of the autograd graph"),
        (lambda: None, "pickle"),
    ):
        with pytest.raises((RuntimeError, AttributeError, pickle.PicklingError), match=error):
            queue.put(item)
    queue.put(treadle.ones(2))  # it still works
    assert queue.get().tolist() == [1, 1]
    if kind != "SimpleQueue":
        queue.close()
        queue.join_thread()


def test_attributes_travel_along() -> None:
    queue = mp.SimpleQueue()
    x = treadle.ones(2)
    x.label = "first"
    w = nn.Parameter(treadle.ones(2))
    w.decays = False
    queue.put([x, w, nn.Buffer(treadle.ones(1), persistent=False)])
    got, weight, buffer = queue.get()
    got[0] = 5
    assert got.label == "first" and x[0] == 5
    assert type(weight) is nn.Parameter and weight.decays is False
    assert type(buffer) is nn.Buffer and buffer.persistent is False
