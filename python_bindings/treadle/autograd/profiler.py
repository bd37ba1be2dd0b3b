"""Recording what operators run, how long they take and what memory they use.

    with treadle.autograd.profiler.profile(record_shapes=True) as prof:
        with record_function("forward"):
            net(x)
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))
    print(prof.report())

`treadle.profiler.profile` is the same with a schedule of steps. Recorded are the thread that
begins, the backward passes it starts, and threads that Python starts meanwhile.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import json
import sys
import threading
import time
from typing import Any, Callable, Iterable, Optional

from treadle import _C
from treadle.autograd import _profiler_device, _profiler_report, _profiler_trace
from treadle.autograd.profiler_util import (
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    MemRecordsAcc,
)

__all__ = [
    "EventList", "FunctionEvent", "FunctionEventAvg", "KinetoStepTracker", "MemRecordsAcc",
    "emit_itt", "emit_nvtx", "kineto_available", "profile", "record_function",
]  # fmt: skip

_BACKWARD, _RANGE = 1, 2


class record_function:  # noqa: N801  a function that is also a context
    """A name for a part of the program, in a recording: `with record_function("forward"): ...`, or
    before a function as its decorator."""

    def __init__(self, name: str, args: Optional[str] = None) -> None:
        self.name = name
        self.args = args
        self.run_callbacks_on_exit = True
        self._event = 0

    def __enter__(self) -> "record_function":
        self._event = _C._profiler_begin(self.name)
        return self

    def __exit__(self, *exception: Any) -> None:
        _C._profiler_end(self._event)

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped


class _ThreadsJoin:
    """While it is on, threads that Python starts are recorded: each is asked to join when its first
    function begins."""

    def start(self) -> None:
        self._before = getattr(threading, "_profile_hook", None)
        threading.setprofile(self._first_call)

    def stop(self) -> None:
        threading.setprofile(self._before)

    def _first_call(self, frame: Any, event: str, arg: Any) -> None:
        _C._profiler_join()
        sys.setprofile(self._before)


class profile:  # noqa: N801  PyTorch's name
    """Records in a `with` block.

    record_shapes: the shapes of arguments. profile_memory: columns of memory in tables. with_stack:
    the lines of the program that call operators. with_flops: how many floating-point operations
    matrix products and convolutions need. enabled=False records nothing. use_device="cuda": what
    the device does is recorded, too.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: Optional[str] = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Optional[Callable] = None,
    ) -> None:
        for name, value in (
            ("experimental_config", experimental_config),
            ("custom_trace_id_callback", custom_trace_id_callback),
        ):
            if value is not None:
                raise NotImplementedError(
                    f"profile: expected {name} = None, got {type(value).__name__}: what it asks "
                    "for is not recorded"
                )
        self.enabled = enabled
        self.entered = False
        self.use_device = "cuda" if use_cuda and use_device is None else use_device
        self._traced: Optional[str] = None
        self.use_cpu = use_cpu
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.acc_events = acc_events
        self._events: Optional[EventList] = None
        self._threads = _ThreadsJoin()
        self._facts: dict[str, Any] = {}
        self._recorded_ns = 0
        self._begin_ns = 0
        self._begin_of_day_ns = 0

    def __enter__(self) -> Optional["profile"]:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._start()
        return self

    def _start(self) -> None:
        _C._profiler_start(self.record_shapes, self.with_stack)
        self._traced = _profiler_device.start(self.use_device)
        self._threads.start()
        self._started_ns = time.monotonic_ns()

    def __exit__(self, *exception: Any) -> None:
        if self.enabled:
            self._stop()

    def _stop(self) -> None:
        recorded_ns = time.monotonic_ns() - self._started_ns
        self._threads.stop()
        raw, stacks = _C._profiler_stop()
        begin = min((event[4] for event in raw), default=self._started_ns)
        self._begin_ns = begin
        self._begin_of_day_ns = time.time_ns() - (time.monotonic_ns() - begin)
        threads: dict[int, int] = {}
        events = _events(raw, stacks, begin, threads)
        works: list[FunctionEvent] = []
        if self._traced is not None:
            works = _profiler_device.stop(self._traced, events, begin, threads)
        made = EventList(
            [*(events if self.use_cpu else []), *works],
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
        )
        if self.acc_events and self._events is not None:
            self._events += made
            self._recorded_ns += recorded_ns
        else:
            self._events = made
            self._recorded_ns = recorded_ns

    # ---- looking at it -----------------------------------------------------------------------

    @property
    def function_events(self) -> EventList:
        """The events of the recording."""
        if self._events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._events

    def __str__(self) -> str:
        if self._events is None:
            return "<unfinished torch.autograd.profile>"
        return str(self._events)

    __repr__ = __str__

    def table(self, *args: Any, **kwargs: Any) -> str:
        """`EventList.table` of the events."""
        return self.function_events.table(*args, **kwargs)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Events of one name added up; see `EventList.key_averages`."""
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def report(self, row_limit: int = 10) -> str:
        """The operators that took most of the processor's time, with what they reached: bytes and
        floating-point operations per second beside the machine's peak, allocations; the time
        outside operators; and what would make the program faster, in words.

        record_shapes=True is needed, else it raises RuntimeError. The peak is that of
        `treadle.profiler.roofline()`.
        """
        if not self.record_shapes:
            raise RuntimeError(
                "report: expected a recording with record_shapes=True, got one without: rates need "
                "the shapes of arguments"
            )
        return _profiler_report.report(self.function_events, self._recorded_ns / 1000, row_limit)

    def total_average(self) -> FunctionEventAvg:
        """All events added up."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events in microseconds, each counted once."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str) -> None:
        """Write the events in the format that chrome://tracing and Perfetto show."""
        _profiler_trace.write(path, *self._trace())

    def _trace(self) -> tuple[list[dict], dict[str, Any]]:
        """The entries of a trace, and its facts."""
        facts = {
            name: 1
            for name in ("record_shapes", "profile_memory", "with_stack", "with_flops")
            if getattr(self, name)
        }
        entries = _profiler_trace.events_of(self.function_events)
        return entries, {**facts, "baseTimeNanoseconds": self._begin_of_day_ns, **self._facts}

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with what was spent in them, as flame graphs are made from."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """A fact that goes into the trace."""
        self._facts[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """A fact, given as JSON, that goes into the trace."""
        self._facts[key] = json.loads(value)


def _events(
    raw: Iterable[tuple], stacks: list, begin: int, threads: dict[int, int]
) -> list[FunctionEvent]:
    """FunctionEvents for what the library recorded, linked to those around them. `threads` is given
    a number for each thread, by that of the system."""
    # `record_function` itself is not where the program is.
    stacks = [[line for line in stack if not line.startswith(__file__)] for stack in stacks]
    made: list[FunctionEvent] = []
    for number, event in enumerate(raw):
        name, kind, thread, parent, start, end, nbytes, shapes, types, values, stack = event[:11]
        made.append(
            FunctionEvent(
                number + 1,
                name,
                threads.setdefault(thread, len(threads) + 1),
                (start - begin) / 1000,
                (end - begin) / 1000,
                input_shapes=json.loads(shapes) if shapes else None,
                input_types=json.loads(types) if types else None,
                concrete_inputs=json.loads(values) if values else None,
                stack=stacks[stack - 1] if stack else (),
                cpu_memory_usage=nbytes,
                is_user_annotation=kind == _RANGE,
                is_backward=kind == _BACKWARD,
                allocations=event[11],
                bytes_moved=event[12],
            )
        )
        if parent >= 0:
            made[number].set_cpu_parent(made[parent])
            made[parent].append_cpu_child(made[number])
    return made


def kineto_available() -> bool:
    """Whether events of a CUDA device can be recorded: once there is one."""
    return _C._device_traced("cuda")


class _ForAnotherTool:
    """Marks operators for a tool that watches the process; that needs the tool's library."""

    _tool = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes

    def __enter__(self) -> Optional["_ForAnotherTool"]:
        if not self.enabled:
            return None
        raise RuntimeError(
            f"{type(self).__name__}: expected a build with {self._tool}, got one without; "
            "treadle.profiler records operators by itself"
        )

    def __exit__(self, *exception: Any) -> None:
        """Nothing was begun."""


class emit_nvtx(_ForAnotherTool):  # noqa: N801  PyTorch's name
    """Marks operators for NVIDIA's profilers. Raises RuntimeError: there is no NVTX here."""

    _tool = "NVTX"


class emit_itt(_ForAnotherTool):  # noqa: N801  PyTorch's name
    """Marks operators for Intel's VTune. Raises RuntimeError: there is no ITT here."""

    _tool = "ITT"


class KinetoStepTracker:
    """Counts steps of a program that several parts of it count: the number is that of the part
    that has counted most."""

    _current_step = 0
    _step_dict: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Let a part count from where the number is."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget a part; gives whether it was there."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """Count a step of a part; gives the number."""
        cls._step_dict[requester] = cls._step_dict.get(requester, cls._current_step) + 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The number."""
        return cls._current_step
