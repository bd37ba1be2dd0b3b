"""The parts of a recording: an event for each call of an operator, and averages over events.

    events.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)

Times are in microseconds, memory in bytes. An event's total covers what it called, `self_...` does
not. The time of a device is that of what was queued in the event, whenever it was done.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import bisect
import enum
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Optional

from treadle.autograd import _profiler_flops, _profiler_table, _profiler_trace

_STEP = "ProfilerStep#"


class DeviceType(enum.Enum):
    """The kind of device that an event ran on."""

    CPU = 0
    CUDA = 1


class Kernel(NamedTuple):
    """A kernel that an event ran on a device, and its duration."""

    name: str
    device: int
    duration: float


class StringTable(dict):
    """The texts of names, each kept once: a name that is not there stands for itself."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


class MemRecordsAcc:
    """Memory records by their time: `in_interval(start_us, end_us)` gives those between, in order.

    mem_records: pairs of a record, which has `start_ns()`, and anything else.
    """

    def __init__(self, mem_records: Iterable[Any]) -> None:
        self._mem_records = sorted(mem_records, key=lambda record: record[0].start_ns())
        self._start_nses = [record[0].start_ns() for record in self._mem_records]

    def in_interval(self, start_us: float, end_us: float) -> Iterator[Any]:
        """The records from one time to another, in microseconds."""
        first = bisect.bisect_left(self._start_nses, start_us * 1000)
        last = bisect.bisect_right(self._start_nses, end_us * 1000)
        yield from self._mem_records[first:last]


class Interval:
    """From when to when an event lasted, in microseconds since the recording began."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """How long it lasted."""
        return self.end - self.start


class FormattedTimesMixin:
    """The common part of single events and averages. The memory of other devices is not recorded,
    and is zero."""

    key: Optional[str] = None
    count = 1
    node_id = -1
    is_async = False
    is_remote = False
    is_legacy = False
    use_device: Optional[str] = None
    device_type = DeviceType.CPU
    overload_name = ""
    device_memory_usage = 0
    self_device_memory_usage = 0
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float
    self_device_time_total: float

    @property
    def cpu_time(self) -> float:
        """The average time of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The average time of the device for a call."""
        return self.device_time_total / self.count if self.count else 0.0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name.endswith("_str"):
            return _profiler_table.time_text(getattr(self, name[: -len("_str")]))
        if "cuda" in name:
            return getattr(self, name.replace("cuda", "device"))
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


class FunctionEvent(FormattedTimesMixin):
    """One call of an operator, one node of a backward pass, or one `record_function` block.

    allocations: how often it took memory of the CPU, with what it called. bytes_moved: the bytes of
    the tensors that it read and of those that it wrote, each element once; 0 for a view, for an
    operator made of others, and where shapes are not recorded.
    """

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        *,
        node_id: int = -1,
        input_shapes: Optional[list] = None,
        input_types: Optional[list] = None,
        concrete_inputs: Optional[list] = None,
        stack: Iterable[str] = (),
        cpu_memory_usage: int = 0,
        is_user_annotation: bool = False,
        is_backward: bool = False,
        allocations: int = 0,
        bytes_moved: int = 0,
    ) -> None:
        self.id = id
        self.name = name
        self.trace_name = name
        self.thread = thread
        self.node_id = node_id
        self.time_range = Interval(start_us, end_us)
        self.input_shapes = input_shapes or []
        self.input_types = input_types or []
        self.concrete_inputs = concrete_inputs or []
        self.stack = list(stack)
        self.cpu_memory_usage = cpu_memory_usage
        self.allocations = allocations
        self.bytes_moved = bytes_moved
        self.is_user_annotation = is_user_annotation
        self.scope = 7 if is_user_annotation else 1 if is_backward else 0
        self.cpu_parent: Optional[FunctionEvent] = None
        self.cpu_children: list[FunctionEvent] = []
        self.kernels: list = []
        self.sequence_nr = -1
        self.fwd_thread: Optional[int] = None
        self.flops = _profiler_flops.flops(name, self.input_shapes, self.concrete_inputs)

    @property
    def key(self) -> str:
        """The key that events of one kind are grouped by: the name."""
        return f"{_STEP[:-1]}*" if self.name.startswith(_STEP) else self.name

    def append_cpu_child(self, child: "FunctionEvent") -> None:
        """Add an event that lies inside this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: "FunctionEvent") -> None:
        """Say which event lies around this one."""
        self.cpu_parent = parent

    @property
    def cpu_time_total(self) -> float:
        """How long it took."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        """How long it took without what it called."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        """How long the device worked on what it queued itself."""
        return sum(kernel.duration for kernel in self.kernels)

    @property
    def device_time_total(self) -> float:
        """How long the device worked on what it queued, with what it called."""
        return self.self_device_time_total + sum(c.device_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes allocated less bytes freed, without those of the calls inside."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_allocations(self) -> int:
        """How often it took memory of the CPU, without the calls inside."""
        return self.allocations - sum(child.allocations for child in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type={self.device_type} "
            f"node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """Several events of one kind, added up."""

    def __init__(self) -> None:
        self.key = None
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.device_time_total = 0.0
        self.self_device_time_total = 0.0
        self.device_type = DeviceType.CPU
        self.cpu_memory_usage = 0
        self.self_cpu_memory_usage = 0
        self.flops = 0
        self.input_shapes: Any = None
        self.stack: list[str] = []
        self.scope: Optional[int] = None
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: Optional[FunctionEvent] = None
        self.is_user_annotation = False

    def add(self, other: Any) -> "FunctionEventAvg":
        """Add an event, or an average, of the same kind."""
        if self.key is None:
            for name in (
                "key", "input_shapes", "stack", "scope", "cpu_parent", "cpu_children",
                "device_type",
            ):  # fmt: skip
                setattr(self, name, getattr(other, name))
            self.is_user_annotation = other.is_user_annotation
        for name in (
            "count", "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage",
            "self_cpu_memory_usage", "flops", "device_time_total", "self_device_time_total",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_cuda_time={self.self_device_time_total_str} "
            f"cuda_time={self.device_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            "cuda_memory_usage=0>"
        )


class EventList(list):
    """Events, or averages, with ways to look at them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._profile_memory = kwargs.pop("profile_memory", False)
        self._with_flops = kwargs.pop("with_flops", False)
        self._use_device = kwargs.pop("use_device", None)
        super().__init__(*args, **kwargs)

    def _like(self, items: Iterable) -> "EventList":
        return EventList(items, profile_memory=self._profile_memory, with_flops=self._with_flops)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, each counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: Optional[str] = None,
        row_limit: int = 100,
        max_src_column_width: Optional[int] = 75,
        max_name_column_width: Optional[int] = 55,
        max_shapes_column_width: Optional[int] = 80,
        header: Optional[str] = None,
        top_level_events_only: bool = False,
        time_unit: Optional[str] = None,
    ) -> str:
        """The events as text, a row each, the largest first.

        sort_by: an attribute such as "cpu_time_total", "self_cpu_memory_usage" or "count"; None
        keeps their order. top_level_events_only: only those that no other is around. time_unit:
        "s", "ms" or "us" for all times. A width of None does not cut.
        """
        rows: Any = self
        if sort_by is not None:
            rows = sorted(self, key=lambda event: getattr(event, sort_by), reverse=True)
        return _profiler_table.table(
            rows,
            row_limit=math.inf if row_limit < 0 else row_limit,
            source_width=max_src_column_width,
            name_width=max_name_column_width,
            shapes_width=max_shapes_column_width,
            header=header,
            memory=self._profile_memory,
            flops=self._with_flops,
            top_level=top_level_events_only,
            time_unit=time_unit,
        )

    def __str__(self) -> str:
        return self.table()

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> "EventList":
        """Events of one name added up: by the shapes of their arguments too if that is asked for,
        and by the `group_by_stack_n` innermost lines of the program that called them."""
        if group_by_overload_name:
            raise NotImplementedError(
                "key_averages: expected group_by_overload_name=False, got True: events have the "
                "names of operators without their overloads"
            )
        groups: dict[tuple, FunctionEventAvg] = {}
        for event in self:
            key = [event.key, event.is_user_annotation, event.device_type]
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            key += event.stack[:group_by_stack_n]
            groups.setdefault(tuple(key), FunctionEventAvg()).add(event)
        for average in groups.values():
            average.stack = average.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
        return self._like(groups.values())

    def total_average(self) -> FunctionEventAvg:
        """All events added up."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Write the events in the format that chrome://tracing and Perfetto show."""
        _profiler_trace.write(path, _profiler_trace.events_of(self), {})

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics that `export_stacks` can measure."""
        return ["self_cpu_time_total", "self_cuda_time_total"]

    def export_stacks(self, path: str, metric: str) -> None:
        """Write stacks with what was spent in them, a line each, as flame graphs are made from."""
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"metric should be one of: {self.supported_export_stacks_metrics()}")
        _profiler_trace.write_stacks(path, self, metric)
