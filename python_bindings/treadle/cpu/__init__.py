"""The CPU as a device: there is one, it is always there, and its work is done when a call returns.

>>> treadle.cpu.device_count()
1
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, Optional

from treadle import _names

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """The text "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is one."""


def synchronize(device: Any = None) -> None:
    """Does nothing: no work is left behind."""


class Stream:
    """Stands where programs expect a stream; work is in order anyway."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Does nothing."""

    def record_event(self) -> None:
        """Does nothing."""

    def wait_event(self, event: Any) -> None:
        """Does nothing."""


class Event:
    """Stands where programs expect an event; it has always happened."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Optional[Stream] = None) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing."""

    def wait(self, stream: Optional[Stream] = None) -> None:
        """Does nothing."""


_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The stream chosen by `stream`."""
    return _stream


@contextlib.contextmanager
def StreamContext(stream: Optional[Stream]) -> Iterator[None]:  # noqa: N802
    """A context in which `stream` is the current one."""
    global _stream
    previous = _stream
    _stream = stream or previous
    try:
        yield
    finally:
        _stream = previous


stream = StreamContext
__getattr__ = _names.attributes_of(__name__)
