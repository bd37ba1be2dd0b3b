"""The work of a device, in a recording: under the operators that queued it, in tables, and on the
same timeline in traces. The device is simulated: what it tells is made up here.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, Iterator, List, Tuple

import pytest

from treadle import _C
from treadle.profiler import ProfilerActivity, profile, record_function, supported_activities

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


class Device:
    """Does what it is told 1 ms later, one after the other."""

    def __init__(self) -> None:
        self.work: List[Tuple[Any, ...]] = []
        self.running = False

    def launch(self, name: str, microseconds: int, kind: int = 0, nbytes: int = 0) -> None:
        now = time.monotonic_ns()
        start = max(now + 1_000_000, self.work[-1][5] if self.work else 0)
        end, thread = start + 1000 * microseconds, threading.get_native_id()
        call = len(self.work) + 1
        self.work.append((name, kind, 0, 7, start, end, now, thread, call, nbytes))

    def start(self, name: str) -> None:
        self.running = True

    def stop(self, name: str) -> List[Tuple[Any, ...]]:
        self.running = False
        return self.work


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    simulated = Device()
    monkeypatch.setattr(_C, "_device_traced", lambda name: name == "cuda")
    monkeypatch.setattr(_C, "_device_trace_start", simulated.start)
    monkeypatch.setattr(_C, "_device_trace_stop", simulated.stop)
    yield simulated
    assert not simulated.running


def record(device: Device, **options: Any) -> profile:
    with profile(**options) as prof:
        with record_function("outer"):
            with record_function("first"):
                device.launch("add(float*)", 3)
            device.launch("Memcpy HtoD", 2, kind=1, nbytes=64)
            with record_function("second"):
                device.launch("add(float*)", 5)
        device.launch("Memset", 1, kind=2, nbytes=8)
    return prof


def test_work_belongs_to_the_innermost_event_that_queued_it(device: Device) -> None:
    events = record(device, activities=BOTH).events()
    by_name = {e.name: e for e in events if e.device_type.name == "CPU"}
    assert by_name["first"].kernels == [("add(float*)", 0, pytest.approx(3))]
    assert by_name["second"].kernels == [("add(float*)", 0, pytest.approx(5))]
    assert [k.name for k in by_name["outer"].kernels] == ["Memcpy HtoD"]
    times = {n: (e.self_device_time_total, e.device_time_total) for n, e in by_name.items()}
    assert times["outer"] == (pytest.approx(2), pytest.approx(10))
    assert times["first"] == (pytest.approx(3), pytest.approx(3))
    work = [e for e in events if e.device_type.name == "CUDA"]
    assert [e.name for e in work] == ["add(float*)", "Memcpy HtoD", "add(float*)", "Memset"]
    assert [e.cpu_time_total for e in work] == [0, 0, 0, 0]
    assert [e.cuda_time for e in work] == [pytest.approx(t) for t in (3, 2, 5, 1)]
    # Work queued outside of every event has no cause; it is on the timeline all the same.
    assert work[3].cause is None and work[0].cause is by_name["first"]
    assert work[0].time_range.start > by_name["first"].time_range.end
    assert [e.id for e in events] == list(range(1, len(events) + 1))


def test_work_of_another_thread_belongs_to_its_events(device: Device) -> None:
    def other() -> None:
        with record_function("there"):
            started.set()
            done.wait()
            device.launch("kernel", 4)

    started, done = threading.Event(), threading.Event()
    with profile(activities=BOTH) as prof:
        with record_function("here"):
            thread = threading.Thread(target=other)
            thread.start()
            started.wait()
            with record_function("meanwhile"):
                done.set()
                thread.join()
    by_name = {e.name: e for e in prof.events() if e.device_type.name == "CPU"}
    assert by_name["there"].device_time_total == pytest.approx(4)
    assert by_name["here"].device_time_total == 0


def test_tables_have_the_time_of_the_device(device: Device) -> None:
    averages = record(device, activities=BOTH).key_averages()
    kernels = next(a for a in averages if a.key == "add(float*)")
    assert (kernels.count, kernels.self_device_time_total) == (2, pytest.approx(8))
    lines = averages.table(sort_by="self_cuda_time_total").splitlines()
    assert lines[1].split("Self CUDA")[1:] and "CUDA total" in lines[1]
    assert lines[3].split()[0] == "add(float*)" and "72.73%" in lines[3]
    assert lines[-1] == "Self CUDA time total: 11.000us"


def test_a_trace_shows_both_and_arrows_between_them(device: Device, tmp_path: Path) -> None:
    prof = record(device, activities=BOTH)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    entries = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    first = next(e for e in entries if e["name"] == "first")
    kernel, copy, _, fill = [e for e in entries if e.get("cat", "").startswith(("kernel", "gpu_"))]
    assert [e["cat"] for e in (kernel, copy, fill)] == ["kernel", "gpu_memcpy", "gpu_memset"]
    assert (kernel["pid"], kernel["tid"], kernel["dur"]) == (0, 7, pytest.approx(3))
    assert kernel["args"]["External id"] == first["args"]["External id"]
    assert copy["args"]["bytes"] == 64
    arrows = [e for e in entries if e.get("cat") == "ac2g"]
    assert len(arrows) == 6  # the fill has none
    begin, end = [e for e in arrows if e["id"] == arrows[0]["id"]]
    assert (begin["ph"], end["ph"]) == ("s", "f")
    assert first["ts"] <= begin["ts"] <= first["ts"] + first["dur"]
    assert (begin["pid"], begin["tid"]) == (first["pid"], first["tid"])
    assert (end["pid"], end["tid"], end["ts"]) == (0, 7, kernel["ts"])
    rows = {e["args"]["name"]: (e["pid"], e["tid"]) for e in entries if e["ph"] == "M"}
    assert rows["GPU 0"] == (0, 0) and rows["stream 7"] == (0, 7)


def test_the_device_is_recorded_where_it_is_asked_for_or_all_is(device: Device) -> None:
    assert supported_activities() == set(BOTH)
    assert any(e.device_type.name == "CUDA" for e in record(device).events())
    device.work.clear()
    alone = record(device, activities=[ProfilerActivity.CPU]).events()
    assert all(e.device_type.name == "CPU" for e in alone)
    device.work.clear()
    work = record(device, activities=[ProfilerActivity.CUDA]).events()
    assert len(work) == 4 and all(e.device_type.name == "CUDA" for e in work)


def test_a_device_that_cannot_be_recorded_is_warned_of(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> None:
        raise RuntimeError("cuda: expected libcupti.so.13, got none")

    monkeypatch.setattr(_C, "_device_trace_start", refuse)
    with pytest.warns(UserWarning) as warned:
        events = record(device, activities=BOTH).events()
    assert str(warned[0].message) == (
        "profile: what the device does is not recorded: cuda: expected libcupti.so.13, got none"
    )
    assert {e.name for e in events} == {"outer", "first", "second"}
