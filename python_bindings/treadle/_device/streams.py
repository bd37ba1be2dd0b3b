"""Streams and events: queues of work on a device, and marks in them.

    s = treadle.Stream(device="mine")
    with s:                               # this thread's work on the device goes to it
        y = x * 2
    s.synchronize()

    start, end = (treadle.Event("mine", enable_timing=True) for _ in range(2))
    start.record(); work(); end.record(); end.synchronize()
    print(start.elapsed_time(end), "ms")

`treadle.NAME.Stream` and `treadle.NAME.Event` are these for one kind of device. A backend without
streams has the default one only; there, work is done in the order it is asked for.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
import weakref
from typing import Any, Dict, List, Optional, Tuple

from treadle import _C
from treadle._device import registry
from treadle._device.index import index_of


class _Thread(threading.local):
    def __init__(self) -> None:
        # The streams that are set, which must not end meanwhile, by kind and number of the device.
        self.set: Dict[Tuple[str, int], Stream] = {}


_thread = _Thread()
# Streams that were made and are still held, by kind and number of the device, and their own number.
_known: "weakref.WeakValueDictionary[Tuple[str, int, int], Stream]" = weakref.WeakValueDictionary()


def _accelerator(what: str) -> str:
    found = registry.current_accelerator()
    if found is None:
        raise RuntimeError(
            f"{what}: expected a device beside the cpu, got none: name one that has a backend"
        )
    return found.type


def _exact(name: str, index: int) -> int:
    return _C._backend_current_device(name) if index < 0 else index


class Stream:
    """A queue of work on a device.

    device: the device; None is the current one of the only backend.
    priority: 0, or a negative number for work that is to come first, where the backend has that.

    When it goes, its work is waited for where memory is kept for later tensors.
    """

    _kind: Optional[str] = None  # set in the classes of one kind of device
    # The number of its device, and its own number there.
    device_index = 0
    stream_id = 0

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        name, index = _place_of(self._kind, device, "Stream")
        self._open(name, index, _C._backend_create_stream(name, index, int(priority)), True)
        self.priority = int(priority)

    def _open(self, name: str, index: int, number: int, owned: bool) -> "Stream":
        self._name, self.device_index, self.stream_id = name, index, number
        self.priority = 0
        # Stream 0 is the device's own.
        self._owned = owned and number != 0
        _known[name, index, number] = self
        return self

    def __del__(self) -> None:
        if getattr(self, "_owned", False):
            _C._backend_destroy_stream(self._name, self.device_index, self.stream_id)

    @property
    def device(self) -> _C.device:
        """The device whose work it takes."""
        return _C.device(self._name, self.device_index)

    @property
    def device_type(self) -> str:
        """The kind of that device."""
        return self._name

    @property
    def native_handle(self) -> int:
        """The number by which the backend knows it."""
        return self.stream_id

    def query(self) -> bool:
        """Whether all work in it is done."""
        return _C._backend_stream_idle(self._name, self.device_index, self.stream_id)

    def synchronize(self) -> None:
        """Wait until all work in it is done."""
        _C._backend_synchronize_stream(self._name, self.device_index, self.stream_id)

    def record_event(self, event: Optional["Event"] = None) -> "Event":
        """Put a mark into it: a new one, or the one given."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: "Event") -> None:
        """Let later work wait for a mark."""
        event.wait(self)

    def wait_stream(self, stream: "Stream") -> None:
        """Let later work wait for all that is in another stream now."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> "Stream":
        device = _C._backend_current_device(self._name)
        _entered.before.append((current(self._name, self.device_index), device))
        _C._backend_set_device(self._name, self.device_index)
        set_current(self)
        return self

    def __exit__(self, *_: Any) -> None:
        stream, device = _entered.before.pop()
        set_current(stream)
        _C._backend_set_device(self._name, device)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Stream) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> Tuple[str, int, int]:
        return self._name, self.device_index, self.stream_id

    def __repr__(self) -> str:
        return f"<treadle.Stream {self.stream_id} of {self.device}>"


class _Entered(threading.local):
    """The stream and the device before each `with` block that is open."""

    def __init__(self) -> None:
        self.before: List[Tuple[Stream, int]] = []


_entered = _Entered()


class Event:
    """A mark in a stream, made when it is first recorded.

    device: a device, or its kind; None is that of the only backend.
    enable_timing: whether elapsed_time() is wanted.
    `blocking` and `interprocess` say nothing here; a mark cannot go to another process.
    """

    _kind: Optional[str] = None
    event_id = 0  # of the backend; 0 before it is recorded

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        if interprocess:
            raise NotImplementedError("Event: expected interprocess=False, got True")
        self._name, self._index = _place_of(self._kind, device, "Event")
        self.enable_timing, self.blocking = enable_timing, blocking
        self._recorded = False

    @property
    def device(self) -> _C.device:
        """The device in whose streams it is."""
        return _C.device(self._name, self._index)

    def __del__(self) -> None:
        if getattr(self, "event_id", 0):
            _C._backend_destroy_event(self._name, self._index, self.event_id)

    def record(self, stream: Optional[Stream] = None) -> None:
        """Put the mark into a stream; None is the current one."""
        if stream is None:
            stream = current(self._name, self._index if self._recorded else -1)
        _same_kind("record", self._name, stream)
        if not self._recorded:
            self._index = stream.device_index
            self.event_id = _C._backend_create_event(self._name, self._index, self.enable_timing)
            self._recorded = True
        elif stream.device_index != self._index:
            raise RuntimeError(
                f"Event.record: expected a stream of {self.device}, got one of {stream.device}"
            )
        _C._backend_record_event(self._name, self._index, self.event_id, stream.stream_id)

    def wait(self, stream: Optional[Stream] = None) -> None:
        """Let later work of a stream wait for the mark; None is the current one. Nothing waits for
        a mark that was never recorded."""
        stream = current(self._name, -1) if stream is None else stream
        _same_kind("wait", self._name, stream)
        if self._recorded:
            index, number = stream.device_index, stream.stream_id
            _C._backend_wait_event(self._name, index, self.event_id, number)

    def query(self) -> bool:
        """Whether all work before the mark is done, as it is for one that was never recorded."""
        return not self._recorded or _C._backend_event_complete(self._name, self.event_id)

    def synchronize(self) -> None:
        """Wait for the work before the mark."""
        if self._recorded:
            _C._backend_synchronize_event(self._name, self.event_id)

    def ipc_handle(self) -> bytes:
        """NotImplementedError: a mark cannot go to another process."""
        raise NotImplementedError("Event.ipc_handle: a mark cannot go to another process")

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> "Event":
        """NotImplementedError: a mark cannot come from another process."""
        raise NotImplementedError("Event.from_ipc_handle: a mark cannot go to another process")

    def elapsed_time(self, end_event: "Event") -> float:
        """Milliseconds from this mark to another. ValueError unless both were recorded, with
        enable_timing, and are complete."""
        for event in (self, end_event):
            if not event._recorded:
                raise ValueError("Event.elapsed_time: expected two events that were recorded")
            if not event.enable_timing:
                raise ValueError("Event.elapsed_time: expected events with enable_timing=True")
            if not event.query():
                raise RuntimeError("Event.elapsed_time: expected events that are complete")
        _same_kind("elapsed_time", self._name, end_event)
        return _C._backend_elapsed(self._name, self.event_id, end_event.event_id)

    def __repr__(self) -> str:
        state = "recorded" if self._recorded else "uninitialized"
        return f"<treadle.Event of {self._name}, {state}>"


def _same_kind(function: str, name: str, other: Any) -> None:
    if other._name != name:
        raise RuntimeError(
            f"Event.{function}: expected something of {name}, got {type(other).__name__} of "
            f"{other._name}"
        )


def _place_of(kind: Optional[str], device: Any, what: str) -> Tuple[str, int]:
    """Kind and number of a device, that of the only backend if it is None or a number."""
    if kind is None:
        given = device is None or isinstance(device, int)
        kind = _accelerator(what) if given else _C.device(device).type
    return kind, _exact(kind, index_of(kind, device))


def stream_type(name: str) -> type:
    """Stream, for one kind of device."""
    doc = f"A queue of work on a device of {name}: Stream(device=None, priority=0)."
    attributes = {"_kind": name, "__module__": f"treadle.{name}", "__doc__": doc}
    return type("Stream", (Stream,), attributes)


def event_type(name: str) -> type:
    """Event, for one kind of device, as it is called there: without one."""

    class EventOfKind(Event):
        _kind = name

        def __init__(
            self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
        ) -> None:
            timing = {"enable_timing": enable_timing, "blocking": blocking}
            super().__init__(None, **timing, interprocess=interprocess)

    EventOfKind.__name__ = EventOfKind.__qualname__ = "Event"
    EventOfKind.__module__ = f"treadle.{name}"
    EventOfKind.__doc__ = f"A mark in a stream of {name}."
    return EventOfKind


class StreamContext:
    """A context in which this thread's work on the stream's device goes to it; None changes
    nothing."""

    def __init__(self, stream: Optional[Stream]) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *_: Any) -> None:
        if self.stream is not None:
            self.stream.__exit__()


def _of(name: str, index: int, number: int) -> Stream:
    known = _known.get((name, index, number))
    if known is not None:
        return known
    return Stream.__new__(_type_of(name))._open(name, index, number, False)


def _type_of(name: str) -> Any:
    return registry.module_of(name).Stream


def current(name: str, index: int) -> Stream:
    """The stream that this thread's work on a device goes to."""
    index = _exact(name, index)
    return _of(name, index, _C._backend_current_stream(name, index))


def default(name: str, index: int) -> Stream:
    """The stream that work goes to unless another is set."""
    return _of(name, _exact(name, index), 0)


def set_current(stream: Stream) -> None:
    """Let this thread's work on the stream's device go to it."""
    _C._backend_set_stream(stream._name, stream.device_index, stream.stream_id)
    _thread.set[stream._name, stream.device_index] = stream
