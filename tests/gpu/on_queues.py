"""On a CUDA device: work is queued and waited for only where a program looks; streams and events
keep their order; memory is used again; errors of values are raised once, and leave the device
usable.

    pytest tests/gpu/on_queues.py          # ./dev gpu says how, on a machine with a GPU
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import time

import pytest

import treadle

cuda = treadle.cuda


def busy(milliseconds: float = 200) -> treadle.Tensor:
    """Queues at least so much work in the current stream, by measure."""
    x = treadle.rand(4096, 4096, device="cuda")
    x @ x  # once, as libraries are opened then
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start.record()
    for _ in range(5):
        x @ x
    end.record()
    end.synchronize()
    for _ in range(int(milliseconds / max(start.elapsed_time(end) / 5, 1e-3)) + 1):
        y = x @ x
    return y


@pytest.fixture(autouse=True)
def _kernels_are_ready() -> None:
    """Kernels that the tests queue are compiled when they are first used, which takes a while."""
    x = treadle.full((1000,), 2.0, device="cuda")
    ((x + 1) * 2).sum().item()
    x.fill_(1)
    cuda.synchronize()


def test_operators_are_queued() -> None:
    busy()
    x = treadle.ones(1000, device="cuda")
    start = time.perf_counter()
    for _ in range(100):
        x = x + 1
    queued = time.perf_counter() - start
    assert not cuda.current_stream().query()
    assert x.sum().item() == 101_000
    assert queued < 0.1


def test_streams_wait_for_events() -> None:
    side = cuda.Stream()
    x = treadle.zeros(1000, device="cuda")
    cuda.synchronize()
    with cuda.stream(side):
        busy()
        x.fill_(3)
        done = cuda.Event()
        done.record()
    assert not done.query()
    done.wait()
    y = x * 2
    assert y.sum().item() == 6000


def test_memory_that_another_stream_reads_is_kept() -> None:
    side = cuda.Stream()
    x = treadle.ones(1 << 20, device="cuda")
    cuda.synchronize()
    with cuda.stream(side):
        busy()
        y = x * 5
    x.record_stream(side)
    place = x.data_ptr()
    del x
    other = treadle.full((1 << 20,), 7.0, device="cuda")
    assert other.data_ptr() != place
    cuda.synchronize()
    assert y.sum().item() == 5 * (1 << 20)


def test_copies_with_pinned_memory_are_queued() -> None:
    here = treadle.arange(1000.0).pin_memory()
    busy()
    there = here.to("cuda", non_blocking=True)
    assert not cuda.current_stream().query()
    assert there.sum().item() == 499_500


def test_memory_is_used_again() -> None:
    def step() -> None:
        x = treadle.rand(1000, 1000, device="cuda", requires_grad=True)
        (x @ x).relu().sum().backward()

    step()
    before = cuda.memory_stats()["num_device_alloc"]
    for _ in range(20):
        step()
    assert cuda.memory_stats()["num_device_alloc"] == before


def test_products_in_several_streams_have_the_bits_of_one() -> None:
    # Few results of long sums, which are split; and a size that is not.
    factors = [
        (treadle.randn(64, 20_000, device="cuda"), treadle.randn(20_000, 64, device="cuda")),
        (treadle.randn(1000, 1000, device="cuda"), treadle.randn(1000, 1000, device="cuda")),
    ]
    alone = [a @ b for a, b in factors]
    cuda.synchronize()
    streams = [cuda.Stream() for _ in range(4)]
    together = []
    for _ in range(10):
        for stream in streams:
            with cuda.stream(stream):
                together.append([a @ b for a, b in factors])
    cuda.synchronize()
    assert all(treadle.equal(x, y) for products in together for x, y in zip(products, alone))


def test_too_much_memory_says_how_much_there_is() -> None:
    with pytest.raises(cuda.OutOfMemoryError):
        treadle.empty(1 << 45, dtype=treadle.uint8, device="cuda")
    assert treadle.ones(10, device="cuda").sum().item() == 10


def test_a_wrong_index_is_raised_where_the_host_waits() -> None:
    table = treadle.ones(5, 3, device="cuda")
    treadle.nn.functional.embedding(treadle.tensor([1, 9], device="cuda"), table)
    with pytest.raises(IndexError, match=r"^embedding: expected index in \[0, 5\), got index = 9$"):
        cuda.synchronize()
    cuda.synchronize()
    assert table.sum().item() == 15


def test_random_numbers_are_those_of_the_cpu() -> None:
    for seed in (0, 2**40 + 3):
        cuda.manual_seed(seed)
        treadle.manual_seed(seed)
        cuda.manual_seed(seed)
        there = treadle.empty(10_001, device="cuda").uniform_()
        here = treadle.empty(10_001).uniform_()
        assert treadle.equal(there.cpu(), here)


def test_the_state_of_random_numbers_comes_back() -> None:
    state = cuda.get_rng_state()
    a = treadle.randn(100, device="cuda")
    cuda.set_rng_state(state)
    assert treadle.equal(a, treadle.randn(100, device="cuda"))


def test_properties() -> None:
    p = cuda.get_device_properties()
    assert p.total_memory > 1 << 30 and p.name == cuda.get_device_name()
    assert cuda.get_device_capability() >= (8, 0)
    assert cuda.mem_get_info()[1] == p.total_memory


def test_calls_that_wait_are_told_or_refused() -> None:
    x = treadle.ones(4, device="cuda")
    pinned = treadle.ones(4).pin_memory()
    try:
        cuda.set_sync_debug_mode("error")
        assert cuda.get_sync_debug_mode() == 2
        for call in (x.sum().item, x.cpu, x.nonzero, x.tolist):
            with pytest.raises(RuntimeError, match="^cuda: expected a call that does not wait for"):
                call()
        y = x * 2 + pinned.to("cuda", non_blocking=True)
        cuda.synchronize()  # which is asked for
        cuda.set_sync_debug_mode(1)
        with pytest.warns(UserWarning, match="called an operation that waits for the device"):
            assert y.sum().item() == 12
    finally:
        cuda.set_sync_debug_mode("default")
    assert cuda.get_sync_debug_mode() == 0 and x.sum().item() == 4
    with pytest.raises(RuntimeError, match="expected one of `default`, `warn`, `error`: loud"):
        cuda.set_sync_debug_mode("loud")


def test_which_devices_reach_each_other() -> None:
    if cuda.device_count() < 2:
        assert not cuda.can_device_access_peer(0, 0)
        return
    assert isinstance(cuda.can_device_access_peer(0, 1), bool)
    x = treadle.arange(5.0, device="cuda:1")
    assert x.to("cuda:0").sum().item() == 10
