"""One trace of several processes: their rows one below the other, on one clock."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gzip
import json
import os
import statistics
import time
from typing import Any, List, Optional, Sequence

from treadle.autograd import _profiler_trace

_BARRIERS = 7


def merge_chrome_traces(paths: Sequence[str], path: str) -> None:
    """Write the traces of export_chrome_trace() in several processes as one, each with rows of its
    own. Their clocks are the times of day of their machines; profile.export_group_trace() aligns
    them. ValueError for no traces, or for one that has no time of day."""
    if not paths:
        raise ValueError("merge_chrome_traces: expected traces, got none")
    traces = []
    for each in paths:
        with open(each, "rb") as file:
            content = file.read()
        trace = json.loads(gzip.decompress(content) if each.endswith(".gz") else content)
        if "baseTimeNanoseconds" not in trace:
            raise ValueError(
                f"merge_chrome_traces: expected baseTimeNanoseconds in {each}, got none"
            )
        traces.append(trace)
    write_merged(traces, path)


def write_merged(
    traces: Sequence[dict], path: str, offsets: Optional[Sequence[int]] = None
) -> None:
    """The same for traces in memory, whose clocks are ahead by `offsets`, in nanoseconds."""
    offsets = offsets or [0] * len(traces)
    bases = [trace["baseTimeNanoseconds"] - ahead for trace, ahead in zip(traces, offsets)]
    first = min(bases)
    entries: List[dict] = []
    for place, (trace, base) in enumerate(zip(traces, bases)):
        rank = trace.get("distributedInfo", {}).get("rank", place)
        processes: dict = {}
        for entry in trace["traceEvents"]:
            number = processes.setdefault(entry["pid"], 1000 * (rank + 1) + len(processes))
            moved = {**entry, "pid": number}
            if entry["ph"] != "M":
                moved["ts"] = entry["ts"] + (base - first) / 1e3
            elif entry["name"] == "process_name":
                moved["args"] = {"name": f"rank {rank}: {entry['args']['name']}"}
            if "id" in entry:  # arrows of one process do not lead to another
                moved["id"] = f"{rank}.{entry['id']}"
            entries.append(moved)
        for number in processes.values():
            order = {"ph": "M", "name": "process_sort_index", "pid": number, "tid": 0, "ts": 0}
            entries.append({**order, "args": {"sort_index": number}})
    facts = {"baseTimeNanoseconds": first, "ranks": len(traces)}
    _profiler_trace.write(path, entries, facts)


def clock_offsets(group: Any) -> List[int]:
    """How far the clock of each member is ahead of the first one's, in nanoseconds. All read their
    clocks when a barrier ends, several times; the error is about the time of a message."""
    from treadle import distributed as dist

    times = []
    for _ in range(_BARRIERS):
        dist.barrier(group)
        times.append(time.time_ns())
    everybody: List[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everybody, times, group=group)
    return [
        int(statistics.median(mine - first for mine, first in zip(each, everybody[0])))
        for each in everybody
    ]


def gathered(trace: dict, path: str, group: Any) -> None:
    """Write the traces of all members of a group, in the first one."""
    from treadle import distributed as dist

    offsets = clock_offsets(group)
    is_first = dist.get_rank(group) == 0
    traces: Optional[List[Any]] = [None] * len(offsets) if is_first else None
    dist.gather_object(json.dumps(trace), traces, group=group, group_dst=0)
    if traces is not None:
        write_merged([json.loads(text) for text in traces], os.fspath(path), offsets)
    dist.barrier(group)
