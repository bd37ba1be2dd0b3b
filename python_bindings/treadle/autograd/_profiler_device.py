"""The work of a device while the program was recorded, under the operators that queued it.

A device works later than it is told to. Each kernel, copy and fill is known with the thread that
queued it and when: the innermost event of that thread at that time is what it belongs to.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Optional

from treadle import _C
from treadle.autograd.profiler_util import DeviceType, FunctionEvent

_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")


class Kernel(NamedTuple):
    """A piece of work of a device, for the operator that queued it; `duration` in microseconds."""

    name: str
    device: int
    duration: float


class DeviceWork(FunctionEvent):
    """A kernel, a copy or a fill, as an event of its own."""

    device_type = DeviceType.CUDA

    def __init__(
        self, id: int, raw: tuple, begin: int, threads: dict[int, int], cause: Optional[Any]
    ) -> None:
        name, kind, device, stream, start, end, queued, thread, call, nbytes = raw
        times = (start - begin) / 1e3, (end - begin) / 1e3
        super().__init__(id, name, threads.get(thread, 0), *times)
        self.device_index, self.device_resource_id = device, stream
        self.category, self.call, self.nbytes = _CATEGORIES[kind], call, nbytes
        # Where there is no operator, there is no arrow from it.
        self.queued_us = (queued - begin) / 1e3 if cause is not None else None
        self.cause = cause
        self.linked_correlation_id = cause.id if cause is not None else 0

    @property
    def cpu_time_total(self) -> float:
        """None: it ran on the device."""
        return 0.0

    @property
    def self_device_time_total(self) -> float:
        """How long it took."""
        return self.time_range.elapsed_us()

    device_time_total = self_device_time_total


def start(kind: Optional[str]) -> Optional[str]:
    """Begin to record what devices of a kind do: the kind, or None where that cannot be done."""
    if kind is None or not _C._device_traced(kind):
        return None
    try:
        _C._device_trace_start(kind)
    except RuntimeError as error:
        warnings.warn(f"profile: what the device does is not recorded: {error}", stacklevel=4)
        return None
    return kind


def stop(
    kind: str, events: list[FunctionEvent], begin: int, threads: dict[int, int]
) -> list[FunctionEvent]:
    """End that: an event for each piece of work, which the operators among `events` know too.

    begin: when the recording began, in nanoseconds; threads: the system's number of each thread,
    and that in the events.
    """
    raw = _C._device_trace_stop(kind)
    causes = _causes(events, raw, begin, threads)
    made: list[FunctionEvent] = []
    for number, (work, cause) in enumerate(zip(raw, causes)):
        made.append(DeviceWork(len(events) + number + 1, work, begin, threads, cause))
        if cause is not None:
            duration = made[-1].time_range.elapsed_us()
            cause.kernels.append(Kernel(made[-1].name, work[2], duration))
    return made


def _causes(
    events: list[FunctionEvent], raw: list[tuple], begin: int, threads: dict[int, int]
) -> list[Optional[FunctionEvent]]:
    """For each piece of work the event that queued it."""
    causes: list[Optional[FunctionEvent]] = [None] * len(raw)
    by_thread: dict[int, list[FunctionEvent]] = {}
    for event in events:
        by_thread.setdefault(event.thread, []).append(event)
    for own in by_thread.values():
        own.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
    # Events of a thread lie inside each other or apart: those that are open make a stack.
    place: dict[int, int] = {}
    stack: dict[int, list[FunctionEvent]] = {}
    for number in sorted(range(len(raw)), key=lambda n: raw[n][6]):
        thread = threads.get(raw[number][7])
        if thread is None or not raw[number][6]:
            continue
        at, own = (raw[number][6] - begin) / 1e3, by_thread.get(thread, [])
        open_events, i = stack.setdefault(thread, []), place.get(thread, 0)
        while i < len(own) and own[i].time_range.start <= at:
            while open_events and open_events[-1].time_range.end < own[i].time_range.start:
                open_events.pop()
            open_events.append(own[i])
            i += 1
        place[thread] = i
        while open_events and open_events[-1].time_range.end < at:
            open_events.pop()
        causes[number] = open_events[-1] if open_events else None
    return causes
