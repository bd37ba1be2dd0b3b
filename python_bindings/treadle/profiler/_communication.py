"""The calls of treadle.distributed in a recording: which, when, and what computed meanwhile.

The groups of processes keep a record of their last calls, 1024 each; a recording takes those that
lie in it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import sys
import time
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Set, Tuple

Span = Tuple[float, float]

# Rows of calls come behind those of threads.
_FIRST_ROW = 1_000_000


class Communication(NamedTuple):
    """A call in this process: times are in microseconds since the recording began."""

    name: str
    backend: str
    group: str
    number: int
    dtype: str
    shape: Tuple[int, ...]
    nbytes: int
    is_message: bool
    state: str
    queued: float
    started: float
    ended: float


def recorded(begin_ns: int) -> List[Communication]:
    """The calls since `begin_ns` of the clock of operators, in the order of their beginnings. One
    that has not ended lasts until now."""
    distributed = sys.modules.get("treadle.distributed")
    if distributed is None or not distributed.is_initialized():
        return []
    from treadle.distributed import _record

    # The record has the time of day.
    begin = time.time() - (time.monotonic_ns() - begin_ns) / 1e9
    calls = []
    for entry in _record.calls():
        started = entry["started"] or time.time()
        ended = entry["ended"] or time.time()
        if started < begin:
            continue
        queued = entry["queued"] or started
        times = [(moment - begin) * 1e6 for moment in (queued, started, ended)]
        shape = tuple(entry["shape"])
        nbytes = math.prod(shape) * entry["itemsize"]
        calls.append(
            Communication(
                entry["name"], entry["backend"], entry["group"], entry["number"], entry["dtype"],
                shape, nbytes, entry["is_message"], entry["state"], *times,
            )
        )  # fmt: skip
    return sorted(calls, key=lambda call: call.started)


def entries_of(calls: Iterable[Communication], process: int) -> List[dict]:
    """The entries of a trace: a row for the calls of each group, and one for its messages."""
    rows: Dict[Tuple[str, bool], int] = {}
    entries: List[dict] = []
    for call in calls:
        row = rows.setdefault((call.group, call.is_message), _FIRST_ROW + len(rows))
        entries.append(
            {
                "ph": "X",
                "cat": "communication",
                "name": f"{call.backend}:{call.name}",
                "pid": process,
                "tid": row,
                "ts": call.started,
                "dur": call.ended - call.started,
                "args": {
                    "group": call.group,
                    "call": call.number,
                    "bytes": call.nbytes,
                    "dtype": call.dtype,
                    "shape": list(call.shape),
                    "state": call.state,
                    "waited_us": call.started - call.queued,
                },
            }
        )
    for (group, is_message), row in rows.items():
        kind = "messages" if is_message else "communication"
        entries.append(
            {
                "ph": "M",
                "name": "thread_name",
                "pid": process,
                "tid": row,
                "ts": 0,
                "args": {"name": f"{kind} of group {group}"},
            }
        )
    return entries


def united(spans: Iterable[Span]) -> List[Span]:
    """The spans of time in order, those that meet as one."""
    made: List[Span] = []
    for begin, end in sorted(spans):
        if made and begin <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], end))
        else:
            made.append((begin, end))
    return made


def seconds_in(span: Span, others: Sequence[Span]) -> float:
    """How much of a span lies in others, which are united."""
    return sum(max(0.0, min(span[1], end) - max(span[0], begin)) for begin, end in others)


def computing(events: Iterable[Any]) -> List[Span]:
    """When operators ran: those of the program, not the ranges that it named."""
    spans = ((e.time_range.start, e.time_range.end) for e in events if not e.is_user_annotation)
    return united(spans)


def overlap(calls: Iterable[Communication], events: Iterable[Any], ranges: Set[str]) -> float:
    """The share of the time of the calls in which operators ran, or one of the ranges."""
    if ranges:
        spans = ((e.time_range.start, e.time_range.end) for e in events if e.name in ranges)
        busy = united(spans)
    else:
        busy = computing(events)
    taken = united((call.started, call.ended) for call in calls)
    total = sum(end - begin for begin, end in taken)
    return sum(seconds_in(span, busy) for span in taken) / total if total else 0.0


def facts() -> Dict[str, Any]:
    """The part of a trace about the processes: nothing where there is one."""
    distributed = sys.modules.get("treadle.distributed")
    if distributed is None or not distributed.is_initialized():
        return {}
    info = {
        "backend": str(distributed.get_backend()),
        "rank": distributed.get_rank(),
        "world_size": distributed.get_world_size(),
    }
    return {"distributedInfo": info}


def table(calls: Sequence[Communication], events: Iterable[Any]) -> str:
    """A line for each function, group and dtype, those that took longest first: calls, megabytes of
    this process's tensors, milliseconds of waiting for other calls and of the call, megabytes per
    second, and the share of the time in which operators ran."""
    busy = computing(events)
    sums: Dict[Tuple[str, str, str], List[float]] = {}
    for call in calls:
        key = (f"{call.backend}:{call.name}", call.group, call.dtype)
        total = sums.setdefault(key, [0.0] * 5)
        took = call.ended - call.started
        beside = seconds_in((call.started, call.ended), busy)
        for place, value in enumerate((1, call.nbytes, call.started - call.queued, took, beside)):
            total[place] += value
    wide = max([len(name) + len(group) for name, group, _ in sums], default=0) + 1
    head = f"{'call, group':{wide}s}{'dtype':>10s}{'calls':>7s}{'MB':>10s}{'waited ms':>11s}"
    lines = [f"{head}{'ms':>10s}{'MB/s':>9s}{'beside operators':>18s}"]
    for (name, group, dtype), (count, nbytes, waited, took, beside) in sorted(
        sums.items(), key=lambda item: -item[1][3]
    ):
        rate = nbytes / took if took else 0.0
        share = beside / took if took else 0.0
        lines.append(
            f"{f'{name} {group}':{wide}s}{dtype:>10s}{count:7.0f}{nbytes / 1e6:10.3f}"
            f"{waited / 1e3:11.3f}{took / 1e3:10.3f}{rate:9.1f}{share:18.0%}"
        )
    return "\n".join(lines)
