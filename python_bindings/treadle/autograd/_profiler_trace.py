"""Events as files: the trace format of Chrome (also Perfetto's), and stacks for flame graphs.

A trace is JSON: of each event its name, when it began and how long it took (in microseconds), and
the process and thread it ran in.
"""

from __future__ import annotations

import gzip
import json
import os
from typing import Any, Iterable

from treadle._atomic_file import replacing

_CATEGORIES = {0: "cpu_op", 1: "cpu_op", 7: "user_annotation"}


def events_of(events: Iterable[Any]) -> list[dict]:
    """The entries of a trace for FunctionEvents."""
    process = os.getpid()
    entries: list[dict] = []
    threads = {}
    for event in events:
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
    names = [("process_name", 0, "python")]
    names += [("thread_name", thread, f"thread {thread} (python)") for thread in threads]
    for kind, thread, name in names:
        entries.append(
            {
                "ph": "M",
                "name": kind,
                "pid": process,
                "tid": thread,
                "ts": 0,
                "args": {"name": name},
            }
        )
    return entries


def write(path: str, entries: list[dict], facts: dict[str, Any]) -> None:
    """Write a trace; a path that ends with .gz is compressed."""
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
