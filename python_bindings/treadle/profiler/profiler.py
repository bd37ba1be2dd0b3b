"""A recording in steps: `prof.step()` after each batch; a schedule says which are recorded.

with profile(
    schedule=schedule(wait=1, warmup=1, active=3, repeat=2),
    on_trace_ready=tensorboard_trace_handler("./log"),
) as prof:
    for batch in batches:
        train(batch)
        prof.step()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import json
import os
import socket
import time
import warnings
from typing import Any, Callable, Iterable, Optional

from treadle.autograd import _profiler_trace
from treadle.autograd import profiler as _recorder
from treadle.autograd.profiler_util import EventList

from . import _communication, _ranks


class ProfilerActivity(enum.Enum):
    """The places whose work may be recorded. Here these are the CPU, and CUDA devices."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """The action in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be recorded: a device's once it was used."""
    traced = {ProfilerActivity.CUDA} if _recorder.kineto_available() else set()
    return {ProfilerActivity.CPU} | traced


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Steps in cycles: `wait` of nothing, `warmup`, `active` that are recorded; `repeat` cycles (0:
    without end), after `skip_first` steps. skip_first_wait=1 leaves out the first `wait`."""
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments")
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step = step - skip_first + (wait if skip_first_wait else 0)
        if repeat > 0 and step / length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: Optional[str] = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[["profile"], None]:
    """For `on_trace_ready`: writes each trace to a file of its own in `dir_name`, where
    TensorBoard's profiler plugin finds it. Traces are always written by Python."""

    def write(prof: "profile") -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}{ending}"))

    return write


def _record_always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


class profile:  # noqa: N801  PyTorch's name
    """Records in a `with` block, or between start() and stop().

    activities: what is recorded, by default all that can be; of CUDA that is kernels, copies and
    fills, under the operators that queued them. schedule: which steps are recorded; without one
    everything is. on_trace_ready: called with this object when a recording is complete.
    record_shapes, profile_memory, with_stack, with_flops: as in autograd.profiler.profile.
    """

    def __init__(
        self,
        *,
        activities: Optional[Iterable[ProfilerActivity]] = None,
        schedule: Optional[Callable[[int], ProfilerAction]] = None,
        on_trace_ready: Optional[Callable[["profile"], Any]] = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: Optional[bool] = None,
        custom_trace_id_callback: Optional[Callable] = None,
    ) -> None:
        for name, value in (
            ("experimental_config", experimental_config),
            ("execution_trace_observer", execution_trace_observer),
            ("custom_trace_id_callback", custom_trace_id_callback),
        ):
            if value is not None:
                raise NotImplementedError(
                    f"profile: expected {name} = None, got {type(value).__name__}: what it asks "
                    "for is not recorded"
                )
        if use_cuda:
            activities = {*(activities or {ProfilerActivity.CPU}), ProfilerActivity.CUDA}
        self.activities = set(activities) if activities else supported_activities()
        self.schedule = schedule or _record_always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.step_rec_fn: Optional[_recorder.record_function] = None
        self.profiler: Optional[_recorder.profile] = None
        self._recording = False
        self._calls: list[_communication.Communication] = []
        self._facts: list[tuple[str, str]] = []

    # ---- the steps ---------------------------------------------------------------------------

    def __enter__(self) -> "profile":
        self.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with step 0."""
        self._enter(self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End the last step, and the recording if one runs."""
        self._end_step()
        if self._recording:
            self._finish()

    def step(self) -> None:
        """The next step begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        records = self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if before is ProfilerAction.RECORD_AND_SAVE:
            self._finish()
        elif self._recording and not records:
            warnings.warn(
                f"Incorrect schedule: {before.name} followed by {self.current_action.name}",
                stacklevel=2,
            )
            self._stop_recording()
        elif before is ProfilerAction.WARMUP and self.current_action is ProfilerAction.NONE:
            warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=2)
        self._enter(self.current_action)
        self._begin_step()

    def _enter(self, action: ProfilerAction) -> None:
        if (
            action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
            and not self._recording
        ):
            self._start_recording()

    def _begin_step(self) -> None:
        if self.record_steps and self.current_action is not ProfilerAction.NONE:
            self.step_rec_fn = _recorder.record_function(f"ProfilerStep#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    # ---- recordings --------------------------------------------------------------------------

    def _start_recording(self) -> None:
        if self.profiler is None or not self.acc_events:
            self.profiler = _recorder.profile(
                use_cpu=ProfilerActivity.CPU in self.activities,
                use_device="cuda" if ProfilerActivity.CUDA in self.activities else None,
                record_shapes=self.record_shapes,
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                with_modules=self.with_modules,
                acc_events=self.acc_events,
            )
        self.profiler._start()
        self._recording = True

    def _stop_recording(self) -> None:
        self._recording = False
        self._recorded()._stop()
        calls = _communication.recorded(self._recorded()._begin_ns)
        self._calls = [*self._calls, *calls] if self.acc_events else calls

    def _finish(self) -> None:
        self._stop_recording()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _recorded(self) -> _recorder.profile:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before it is looked at")
        return self.profiler

    # ---- looking at it -----------------------------------------------------------------------

    def events(self) -> EventList:
        """The events of the last complete recording."""
        return self._recorded().function_events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Events of one name added up; see `EventList.key_averages`."""
        return self._recorded().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def report(self, row_limit: int = 10) -> str:
        """A text on where the time went and how the program would be faster; see
        `treadle.autograd.profiler.profile.report`."""
        return self._recorded().report(row_limit)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events, and the calls of treadle.distributed in rows of their own, as a trace
        that chrome://tracing and Perfetto show; compressed if the path ends with .gz."""
        _profiler_trace.write(path, *self._trace())

    def export_group_trace(self, path: str, group: Any = None) -> None:
        """Write the traces of all processes of a group as one, on one clock, in the first of them.
        All processes of the group call it."""
        entries, facts = self._trace()
        _ranks.gathered({**facts, "traceEvents": entries}, path, group)

    def _trace(self) -> tuple[list[dict], dict[str, Any]]:
        recorded = self._recorded()
        for key, value in self._facts:
            recorded.add_metadata_json(key, value)
        entries, facts = recorded._trace()
        entries += _communication.entries_of(self._calls, os.getpid())
        return entries, {**_communication.facts(), **facts}

    def communication(self) -> list[_communication.Communication]:
        """The calls of treadle.distributed in the last recording, in the order of their beginnings:
        name, group, dtype, bytes, and when each was queued, started and ended."""
        self._recorded()
        return list(self._calls)

    def communication_table(self) -> str:
        """A table of bytes and time by function, group and dtype, with the share of the time in
        which operators ran beside."""
        return _communication.table(self._calls, self.events())

    def communication_overlap(self, ranges: Iterable[str] = ()) -> float:
        """The share of the time of all calls of treadle.distributed in which operators ran; with
        names of ranges (record_function), in which one of these did. 0.0 without calls."""
        return _communication.overlap(self._calls, self.events(), set(ranges))

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with what was spent in them, as flame graphs are made from."""
        self._recorded().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """A fact that goes into the trace."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """A fact, given as JSON, that goes into the trace."""
        self._facts.append((key, value))

    preset_metadata_json = add_metadata_json
