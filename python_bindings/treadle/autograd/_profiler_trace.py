"""Events as files: the trace format of Chrome (also Perfetto's), and stacks for flame graphs.

A trace is JSON: of each event its name, when it began and how long it took (in microseconds), and
the process and thread it ran in. A device's streams are rows of a process of their own.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gzip
import json
import os
from typing import Any, Iterable

from treadle._atomic_file import replacing

_CATEGORIES = {0: "cpu_op", 1: "cpu_op", 7: "user_annotation"}


def events_of(events: list[Any]) -> list[dict]:
    """The entries of a trace for FunctionEvents."""
    process = os.getpid()
    entries: list[dict] = []
    threads: dict[Any, Any] = {}
    works = [event for event in events if event.device_type.name == "CUDA"]
    for event in events:
        if event.device_type.name == "CUDA":
            entries += _entries_of_work(event, process)
            continue
        arguments: dict[str, Any] = {"External id": event.id}
        if event.input_shapes or event.input_types:
            arguments["Input Dims"] = event.input_shapes
            arguments["Input type"] = event.input_types
            arguments["Concrete Inputs"] = event.concrete_inputs
        if event.cpu_memory_usage:
            arguments["Bytes"] = event.cpu_memory_usage
        if event.stack:
            arguments["Call stack"] = ";".join(reversed(event.stack))
        threads.setdefault(event.thread, None)
        entries.append(
            {
                "ph": "X",
                "cat": _CATEGORIES[event.scope],
                "name": event.name,
                "pid": process,
                "tid": event.thread,
                "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(),
                "args": arguments,
            }
        )
    names = [("process_name", process, 0, "python")]
    names += [("thread_name", process, thread, f"thread {thread} (python)") for thread in threads]
    names += _names_of_rows(works)
    for kind, place, thread, name in names:
        entries.append(
            {
                "ph": "M",
                "name": kind,
                "pid": place,
                "tid": thread,
                "ts": 0,
                "args": {"name": name},
            }
        )
    return entries


def _entries_of_work(work: Any, process: int) -> list[dict]:
    """The entries of a trace for a piece of work: itself in its stream's row, and an arrow from the
    operator that queued it."""
    at = {"pid": work.device_index, "tid": work.device_resource_id}
    arguments = {
        "External id": work.linked_correlation_id,
        "device": work.device_index,
        "stream": work.device_resource_id,
        "correlation": work.call,
    }
    if work.nbytes:
        arguments["bytes"] = work.nbytes
    entries = [
        {
            "ph": "X", "cat": work.category, "name": work.name, **at,
            "ts": work.time_range.start, "dur": work.time_range.elapsed_us(), "args": arguments,
        }
    ]  # fmt: skip
    if work.queued_us is not None:
        arrow = {"cat": "ac2g", "name": "ac2g", "id": work.id}
        begin = {"ph": "s", "pid": process, "tid": work.thread, "ts": work.queued_us}
        end = {"ph": "f", "bp": "e", **at, "ts": work.time_range.start}
        entries += [{**arrow, **begin}, {**arrow, **end}]
    return entries


def _names_of_rows(works: Iterable[Any]) -> list[tuple[str, int, int, str]]:
    """(kind, process, thread, name) of the rows that the devices' work is in."""
    rows = sorted({(work.device_index, work.device_resource_id) for work in works})
    names = [("process_name", device, 0, f"GPU {device}") for device in {row[0] for row in rows}]
    return names + [("thread_name", d, stream, f"stream {stream}") for d, stream in rows]


def write(path: str, entries: list[dict], facts: dict[str, Any]) -> None:
    """Write a trace; a path that ends with .gz is compressed. The fact baseTimeNanoseconds is the
    time of day, since 1970, at which `ts` is 0."""
    content = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        **facts,
        "traceEvents": entries,
        "traceName": os.fspath(path),
    }
    text = json.dumps(content).encode("utf-8")
    with replacing(os.fspath(path)) as file:
        file.write(gzip.compress(text) if os.fspath(path).endswith(".gz") else text)


def write_stacks(path: str, events: Iterable[Any], metric: str) -> None:
    """A line for each event with a stack: its frames, outermost first, and the metric."""
    plain = str.maketrans(" ;\t\n", "____")
    lines = []
    for event in events:
        value = int(getattr(event, metric))
        if event.stack and value > 0:
            frames = ";".join(frame.translate(plain) for frame in reversed(event.stack))
            lines.append(f"{frames} {value}\n")
    with replacing(os.fspath(path)) as file:
        file.write("".join(lines).encode("utf-8"))
