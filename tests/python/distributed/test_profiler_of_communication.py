"""The profiler's view of communication: rows of calls beside operators, one trace of all processes,
tables of bytes and time."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

import treadle
import treadle.distributed as dist
from process_groups import together
from treadle import nn
from treadle.nn.parallel import DistributedDataParallel
from treadle.profiler import merge_chrome_traces, profile, record_function
from treadle.profiler._communication import seconds_in, united


def _recorded(rank: int, world: int, folder: str) -> Dict[str, Any]:
    pair = dist.new_group()
    model = DistributedDataParallel(nn.Sequential(*[nn.Linear(64, 64) for _ in range(4)]),
                                    bucket_cap_mb=0.01)  # fmt: skip
    x = treadle.randn(32, 64)
    for _ in range(2):
        model(x).sum().backward()
    dist.all_reduce(treadle.ones(3))  # before the recording
    with profile() as prof:
        loss = model(x).sum()
        with record_function("backward"):
            loss.backward()
        dist.broadcast(treadle.ones(5, dtype=treadle.float64), 0, group=pair)
    prof.export_chrome_trace(f"{folder}/{rank}.json")
    prof.export_group_trace(f"{folder}/all.json")
    calls = prof.communication()
    return {
        "calls": [(c.name, c.backend, c.dtype, c.shape, c.nbytes, c.state) for c in calls],
        "groups": [c.group for c in calls],
        "numbers": [c.number for c in calls],
        "ordered": all(0 <= c.queued <= c.started <= c.ended for c in calls),
        "table": prof.communication_table(),
        "overlaps": [prof.communication_overlap(), prof.communication_overlap(["backward"])],
    }


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("traces")
    return folder, together(2, _recorded, str(folder))


def test_the_calls_of_a_recording(found: Any) -> None:
    _, (first, second) = found
    assert first["calls"] == second["calls"] and first["numbers"] == second["numbers"]
    elements = 64 * 64 + 64
    calls = first["calls"]
    assert calls[-1] == ("broadcast", "gloo", "float64", (5,), 40, "completed")
    reduced = [c for c in calls if c[0] == "all_reduce"]
    assert len(calls) == len(reduced) + 1 and len(reduced) > 1
    assert sum(c[4] for c in reduced) == 4 * 4 * elements
    assert first["groups"][0] != first["groups"][-1]
    numbers = first["numbers"][: len(reduced)]
    assert numbers == list(range(numbers[0], numbers[0] + len(reduced)))
    for each in (first, second):
        assert each["ordered"] and all(0 <= share <= 1 for share in each["overlaps"])


def test_the_table(found: Any) -> None:
    lines = found[1][0]["table"].splitlines()
    assert lines[0].split() == (
        "call, group dtype calls MB waited ms ms MB/s beside operators".split()
    )
    rows = {line.split()[0]: line.split() for line in lines[1:]}
    assert rows.keys() == {"gloo:all_reduce", "gloo:broadcast"}
    assert rows["gloo:all_reduce"][2] == "float32" and rows["gloo:broadcast"][3] == "1"
    assert rows["gloo:all_reduce"][4] == "0.067" and rows["gloo:all_reduce"][-1].endswith("%")


def _checked(trace: Dict[str, Any]) -> List[dict]:
    """The entries of calls, each in a row of communication and none over another in its row."""
    entries = [e for e in trace["traceEvents"] if e.get("cat") == "communication"]
    names = {
        (e["pid"], e["tid"]): e["args"]["name"]
        for e in trace["traceEvents"]
        if e["ph"] == "M" and e["name"] == "thread_name"
    }
    rows: Dict[Any, List[dict]] = {}
    for entry in entries:
        assert names[entry["pid"], entry["tid"]] == (
            f"communication of group {entry['args']['group']}"
        )
        assert set(entry["args"]) == {
            "group", "call", "bytes", "dtype", "shape", "state", "waited_us"
        }  # fmt: skip
        rows.setdefault((entry["pid"], entry["tid"]), []).append(entry)
    for row in rows.values():
        for before, after in zip(row, row[1:]):
            assert before["ts"] + before["dur"] <= after["ts"] + 1
    operators = {(e["pid"], e["tid"]) for e in trace["traceEvents"] if e.get("cat") == "cpu_op"}
    assert operators and not operators & rows.keys()
    return entries


def test_traces_of_one_process_and_of_all(found: Any) -> None:
    folder, (first, _) = found
    count = len(first["calls"])
    paths = [str(Path(folder) / f"{rank}.json") for rank in range(2)]
    for rank, path in enumerate(paths):
        trace = json.loads(Path(path).read_text())
        assert len(_checked(trace)) == count
        assert trace["distributedInfo"] == {"backend": "gloo", "rank": rank, "world_size": 2}
    merge_chrome_traces(paths, str(Path(folder) / "merged.json"))
    for name in ("merged.json", "all.json"):
        trace = json.loads((Path(folder) / name).read_text())
        entries = _checked(trace)
        assert len(entries) == 2 * count and trace["ranks"] == 2
        processes = {
            e["pid"]: e["args"]["name"]
            for e in trace["traceEvents"]
            if e["ph"] == "M" and e["name"] == "process_name"
        }
        assert sorted(processes.values()) == ["rank 0: python", "rank 1: python"]
        # On one clock, the same call overlaps in both processes.
        by_call: Dict[Any, List[dict]] = {}
        for entry in entries:
            key = entry["name"], entry["args"]["group"], entry["args"]["call"]
            by_call.setdefault(key, []).append(entry)
        for one, other in by_call.values():
            assert one["pid"] != other["pid"]
        ends = [max(e["ts"] + e["dur"] for e in pair) for pair in by_call.values()]
        begins = [min(e["ts"] for e in pair) for pair in by_call.values()]
        assert all(begin < end for begin, end in zip(begins, ends))


def test_spans_of_time() -> None:
    assert united([(4, 5), (0, 2), (1, 3)]) == [(0, 3), (4, 5)]
    assert seconds_in((2, 10), [(0, 3), (4, 5)]) == 2
    assert united([]) == [] and seconds_in((0, 1), []) == 0


def test_traces_that_cannot_be_merged(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="^merge_chrome_traces: expected traces, got none$"):
        merge_chrome_traces([], str(tmp_path / "x.json"))
    other = tmp_path / "other.json"
    other.write_text('{"traceEvents": []}')
    with pytest.raises(ValueError) as raised:
        merge_chrome_traces([str(other)], str(tmp_path / "x.json"))
    assert str(raised.value) == (
        f"merge_chrome_traces: expected baseTimeNanoseconds in {other}, got none"
    )


def test_one_process_has_no_communication() -> None:
    with profile() as prof:
        treadle.ones(3) + 1
    assert prof.communication() == [] and prof.communication_overlap() == 0
    assert len(prof.communication_table().splitlines()) == 1
