"""Streams and events: queues of work on a CUDA device, so that there is none without one."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

from treadle._device import facade

Stream: Any = facade.stream_type("cuda", "cuda.streams")


class ExternalStream(Stream):
    """A stream that another library made."""


class Event:
    """A mark in a stream. It can be made before there is a device, but not recorded."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        found = facade.of_backend("cuda", "Event") if cls is Event else None
        return super().__new__(cls) if found is None else found(*args, **kwargs)

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.enable_timing = enable_timing

    def record(self, stream: Any = None) -> None:
        """Put the mark into a stream."""
        raise facade.no_device("cuda.Event.record")

    def wait(self, stream: Any = None) -> None:
        """Let a stream wait for the mark."""
        raise facade.no_device("cuda.Event.wait")

    def query(self) -> bool:
        """Whether all work before the mark is done, as it is for one that was never recorded."""
        return True

    def synchronize(self) -> None:
        """Wait for the work before the mark: there is none."""

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two marks that were recorded."""
        raise ValueError("cuda.Event.elapsed_time: expected two events that were recorded")

    def __repr__(self) -> str:
        return "<torch.cuda.Event uninitialized>"


class StreamContext:
    """`with cuda.stream(s):` puts work into `s`; None changes nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            raise facade.no_device("cuda.stream")

    def __exit__(self, *_: Any) -> None:
        pass


def stream(stream: Any) -> StreamContext:
    """A context that puts work into a stream; None changes nothing."""
    return StreamContext(stream)


current_stream = facade.refused("cuda", "current_stream")
default_stream = facade.refused("cuda", "default_stream")
set_stream = facade.refused("cuda", "set_stream")

__all__ = [
    "Event",
    "ExternalStream",
    "Stream",
    "StreamContext",
    "current_stream",
    "default_stream",
    "set_stream",
    "stream",
]
