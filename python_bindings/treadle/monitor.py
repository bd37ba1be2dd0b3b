"""Counting what happens in a program: numbers are gathered over a window of time and then logged.

Example:

    log = register_event_handler(lambda event: print(event.name, event.data))
    stat = Stat("loss", [MEAN, COUNT], timedelta(seconds=60))
    stat.add(0.3)
    ...
    unregister_event_handler(log)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import threading
import time
from datetime import datetime, timedelta
from typing import Any, Callable, Dict, List, Optional, Union

data_value_t = Union[str, float, int, bool]


class Aggregation(enum.Enum):
    """The aggregate of a window's numbers: the last, their mean, count, sum, greatest, least."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


VALUE, MEAN, COUNT = Aggregation.VALUE, Aggregation.MEAN, Aggregation.COUNT
SUM, MAX, MIN = Aggregation.SUM, Aggregation.MAX, Aggregation.MIN

STAT_EVENT = "torch.monitor.Stat"


class Event:
    """Something that happened: its kind, when, and facts about it."""

    def __init__(self, name: str, timestamp: datetime, data: Dict[str, data_value_t]) -> None:
        self.name, self.timestamp, self.data = name, timestamp, data


class EventHandlerHandle:
    """The handle of register_event_handler(), to take it back."""

    def __init__(self, handler: Callable[[Event], None]) -> None:
        self._handler = handler


_handlers: List[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Let a function be called with every event."""
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Take that back; ValueError for what is not registered."""
    if handler not in _handlers:
        raise ValueError("unregister_event_handler: expected a handler that is registered")
    _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Give an event to all handlers."""
    for handle in list(_handlers):
        handle._handler(event)


class Stat:
    """Numbers that are gathered. Once `window_size` has passed, at the next add() or get(), what
    the aggregations make of them is logged, as `NAME.mean` and so on, and counting begins anew; no
    more than `max_samples` count in a window."""

    def __init__(
        self,
        name: str,
        aggregations: List[Aggregation],
        window_size: timedelta,
        max_samples: Optional[int] = None,
    ) -> None:
        if window_size <= timedelta(0):
            raise ValueError(f"Stat: expected a window of some time, got {window_size}")
        self.name = name
        self._aggregations = list(aggregations)
        self._window = window_size.total_seconds()
        self._most = max_samples
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._end = time.monotonic() + self._window
        self._values: List[float] = []

    def _aggregated(self) -> Dict[Aggregation, float]:
        values = self._values
        results = {
            VALUE: values[-1] if values else 0.0,
            MEAN: sum(values) / len(values) if values else 0.0,
            COUNT: float(len(values)),
            SUM: float(sum(values)),
            MAX: max(values, default=0.0),
            MIN: min(values, default=0.0),
        }
        return {aggregation: results[aggregation] for aggregation in self._aggregations}

    def _closed(self) -> Optional[Event]:
        """The event of a window that is over."""
        if time.monotonic() < self._end:
            return None
        event = None
        if self._values:
            found = self._aggregated().items()
            data: Dict[str, data_value_t] = {f"{self.name}.{a.name.lower()}": v for a, v in found}
            event = Event(STAT_EVENT, datetime.now(), data)
        self._begin()
        return event

    def add(self, v: float) -> None:
        """Add a number."""
        with self._lock:
            event = self._closed()
            if self._most is None or len(self._values) < self._most:
                self._values.append(float(v))
        if event is not None:
            log_event(event)

    def get(self) -> Dict[Aggregation, float]:
        """The aggregates of the numbers of this window."""
        with self._lock:
            event = self._closed()
            found = self._aggregated()
        if event is not None:
            log_event(event)
        return found

    @property
    def count(self) -> int:
        """How many numbers this window has."""
        return len(self._values)


class TensorboardEventHandler:
    """A handler that writes the numbers of every Stat to a SummaryWriter."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


__all__ = [
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]
