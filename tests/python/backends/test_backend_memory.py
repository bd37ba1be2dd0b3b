"""The memory of devices from outside as programs see it: PyTorch's numbers, table and snapshot,
limits, what is kept for which stream, and what is said when memory runs out.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import ctypes
from collections import OrderedDict
from pathlib import Path

import pytest

import plugins
import treadle
from plugins import alone

HERE = Path(__file__).parent
MIB = 1 << 20
DEVICE = {"device": "streams"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A backend whose storages are addresses, of devices with 64 MiB."""
    target = tmp_path_factory.mktemp("memory") / "streams.so"
    flags = ("-DFLAGS=TREADLE_CACHE_MEMORY|TREADLE_ADDRESSABLE", f"-DCAPACITY={64 * MIB}")
    return plugins.build_file(target, HERE / "backend_streams.c", flags=flags)


def refusal(call: object, error: type) -> str:
    with pytest.raises(error) as caught:
        call()  # type: ignore[operator]
    assert type(caught.value) is error
    return str(caught.value)


@alone
def test_numbers(library: str) -> None:
    treadle.load_backend(library)
    module = treadle.streams
    small = treadle.empty(1000, dtype=treadle.int8, **DEVICE)
    large = treadle.empty(3 * MIB, dtype=treadle.int8, **DEVICE)
    stats = module.memory_stats()
    assert type(stats) is OrderedDict and list(stats) == sorted(stats)
    quantities = "allocation segment active inactive_split".split()
    with_bytes = "allocated reserved active inactive_split requested".split()
    names = {
        f"{quantity}.{pool}.{column}"
        for quantity in quantities + [f"{name}_bytes" for name in with_bytes]
        for pool in ("all", "small_pool", "large_pool")
        for column in ("current", "peak", "allocated", "freed")
    }
    others = {name for name in stats if name not in names}
    assert names < set(stats) and len(names) == 108
    assert others == {
        "max_split_size", "num_alloc_retries", "num_ooms", "num_sync_all_streams",
        "num_device_alloc", "num_device_free",
        *(f"oversize_{what}.{column}" for what in ("allocations", "segments")
          for column in ("current", "peak", "allocated", "freed")),
    }  # fmt: skip
    assert [stats[f"allocated_bytes.{pool}.current"] for pool in ("small_pool", "large_pool")] == [
        1024, 3 * MIB,
    ]  # fmt: skip
    assert stats["requested_bytes.all.current"] == 1000 + 3 * MIB
    assert stats["reserved_bytes.all.current"] == 22 * MIB == module.memory_reserved()
    assert stats["inactive_split_bytes.all.current"] == 19 * MIB - 1024
    assert (stats["segment.all.current"], stats["inactive_split.all.current"]) == (2, 2)
    assert (stats["num_device_alloc"], stats["num_device_free"]) == (2, 0)
    assert module.memory_stats_as_nested_dict()["active"]["all"]["peak"] == 2
    assert module.memory_allocated() == 3 * MIB + 1024 and module.memory_allocated(1) == 0
    del large
    again = treadle.empty(2 * MIB, dtype=treadle.int8, **DEVICE)
    assert module.memory_stats()["num_device_alloc"] == 2, "cut from what is kept"
    del again
    assert module.memory_allocated() == 1024 and module.max_memory_allocated() == 3 * MIB + 1024
    module.empty_cache()
    assert module.memory_reserved() == 2 * MIB and module.max_memory_reserved() == 22 * MIB
    module.reset_peak_memory_stats()
    assert module.max_memory_allocated() == 1024 and module.max_memory_reserved() == 2 * MIB
    assert module.memory_stats()["allocation.all.allocated"] == 3
    module.reset_accumulated_memory_stats()
    assert module.memory_stats()["allocation.all.allocated"] == 0
    assert module.memory_stats()["num_device_alloc"] == 0
    assert treadle.accelerator.memory_allocated() == small.nbytes + 24


@alone
def test_table(library: str) -> None:
    treadle.load_backend(library)
    kept = [treadle.empty(400000, **DEVICE) for _ in range(3)]
    del kept[1]
    assert (
        treadle.streams.memory_summary(abbreviated=True)
        == """\
|===========================================================================|
|                            Memory of streams:0                            |
|---------------------------------------------------------------------------|
|  out of memory: 0            |  retries: 0                                |
|===========================================================================|
| Metric                | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |   3125 KiB |   4687 KiB |   4687 KiB |   1562 KiB |
|---------------------------------------------------------------------------|
| Active memory         |   3125 KiB |   4687 KiB |   4687 KiB |   1562 KiB |
|---------------------------------------------------------------------------|
| Requested memory      |   3125 KiB |   4687 KiB |   4687 KiB |   1562 KiB |
|---------------------------------------------------------------------------|
| Reserved memory       |  20480 KiB |  20480 KiB |  20480 KiB |      0 B   |
|---------------------------------------------------------------------------|
| Non-releasable memory |  17355 KiB |  18917 KiB |  20480 KiB |   3125 KiB |
|---------------------------------------------------------------------------|
| Allocations           |       2    |       3    |       3    |       1    |
|---------------------------------------------------------------------------|
| Active allocs         |       2    |       3    |       3    |       1    |
|---------------------------------------------------------------------------|
| Reserved segments     |       1    |       1    |       1    |       0    |
|---------------------------------------------------------------------------|
| Non-releasable allocs |       2    |       2    |       2    |       0    |
|===========================================================================|
"""
    )
    full = treadle.streams.memory_summary("streams:1").splitlines()
    assert "Memory of streams:1" in full[1] and full[7].startswith("| Allocated memory ")
    assert full[8].startswith("|       from large pool |") and len({len(row) for row in full}) == 1


@alone
def test_snapshot(library: str) -> None:
    treadle.load_backend(library)
    module = treadle.streams
    stream = module.Stream("streams:1")
    first = treadle.empty(1000, dtype=treadle.int8, **DEVICE)
    second = treadle.empty(600, dtype=treadle.int8, **DEVICE)
    with stream:
        third = treadle.empty(5 * MIB, dtype=treadle.int8, device="streams:1")
    address = first.data_ptr()
    del first
    small, large = module.memory_snapshot()
    blocks = small.pop("blocks")
    assert small == {
        "device": 0,
        "address": address,
        "total_size": 2 * MIB,
        "allocated_size": 1024,
        "active_size": 1024,
        "requested_size": 600,
        "stream": 0,
        "segment_type": "small",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
    }
    fields = ("size", "requested_size", "state")
    assert [(b["address"] - address, *(b[field] for field in fields)) for b in blocks] == [
        (0, 1024, 0, "inactive"),
        (1024, 1024, 600, "active_allocated"),
        (2048, 2 * MIB - 2048, 0, "inactive"),
    ]
    assert (large["device"], large["stream"], large["segment_type"]) == (
        1, stream.stream_id, "large",
    )  # fmt: skip
    assert large["blocks"][0]["address"] == third.data_ptr() and second.is_streams


@alone
def test_what_another_stream_uses_waits_for_it(library: str) -> None:
    treadle.load_backend(library)
    module = treadle.streams
    passed = ctypes.c_int32.in_dll(ctypes.CDLL(library), "events_passed")
    side = module.Stream()
    x = treadle.empty(1000, **DEVICE)
    address = x.data_ptr()
    x[10:].record_stream(side)
    passed.value = 0
    del x
    stats = module.memory_stats()
    assert (stats["allocation.all.current"], stats["active.all.current"]) == (0, 1)
    assert module.memory_snapshot()[0]["blocks"][0]["state"] == "active_pending_free"
    assert treadle.empty(1000, **DEVICE).data_ptr() != address
    passed.value = 1
    assert treadle.empty(1000, **DEVICE).data_ptr() == address
    # A stream that is gone is not asked.
    y = treadle.empty(1000, **DEVICE)
    y.record_stream(side)
    passed.value = 0
    del side
    del y
    assert module.memory_stats()["active.all.current"] == 0
    elsewhere = module.Stream("streams:1")
    y = treadle.empty(1000, **DEVICE)
    assert refusal(lambda: y.record_stream(elsewhere), RuntimeError) == (
        "record_stream: expected a stream of streams:0, got one of streams:1"
    )
    assert refusal(lambda: treadle.ones(1).record_stream(elsewhere), RuntimeError) == (
        "record_stream: expected a tensor on a device with streams, got one on cpu"
    )


@alone
def test_limits(library: str) -> None:
    treadle.load_backend(library)
    module = treadle.streams
    assert module.get_per_process_memory_fraction() == 1.0
    module.set_per_process_memory_fraction(0.5)
    assert module.get_per_process_memory_fraction("streams:0") == 0.5
    assert module.get_per_process_memory_fraction(1) == 1.0
    x = treadle.empty(16 * MIB, dtype=treadle.int8, **DEVICE)
    make = lambda: treadle.empty(20 * MIB, dtype=treadle.int8, **DEVICE)  # noqa: E731
    assert refusal(make, treadle.OutOfMemoryError) == (
        "empty: expected to allocate 20.0 MiB on streams:0, the limit of 32.0 MiB refused, a "
        "fraction of 0.5 of its memory\n"
        "tensors hold 16.0 MiB, the cache keeps 0 bytes of freed memory\n"
        "the device has 64.0 MiB free of 64.0 MiB"
    )
    assert module.memory_stats()["num_ooms"] == 1
    del x
    make()
    assert module.memory_reserved() == 20 * MIB, "what was kept made room"
    module.set_per_process_memory_fraction(1.0)
    setter = module.set_per_process_memory_fraction
    assert refusal(lambda: setter(1), TypeError) == (
        "set_per_process_memory_fraction: expected a float, got int"
    )
    assert refusal(lambda: setter(1.5), ValueError) == (
        "expected a fraction of the memory between 0 and 1, got 1.5"
    )
