"""Events of a run, for those who collect them: a record goes to a handler of
`logging`, by default nowhere.

    record(Event("checkpoint", EventSource.WORKER, metadata={"step": 7}), "console")
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import logging
import time
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Dict, Union

EventMetadataValue = Union[str, int, float, bool, None]


class EventSource(str, Enum):
    """Whose event it is."""

    AGENT = "AGENT"
    WORKER = "WORKER"


@dataclass
class Event:
    """Something that happened; `timestamp` is in milliseconds, 0 stands for now when it is
    recorded."""

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: Dict[str, EventMetadataValue] = field(default_factory=dict)

    def serialize(self) -> str:
        """The event as JSON."""
        return json.dumps(asdict(self))

    @staticmethod
    def deserialize(data: Union[str, Event]) -> Event:
        """The event of such a text."""
        if isinstance(data, Event):
            return data
        said = json.loads(data)
        return Event(**{**said, "source": EventSource[said["source"]]})

    def __str__(self) -> str:
        return self.serialize()


_HANDLERS: Dict[str, logging.Handler] = {
    "console": logging.StreamHandler(),
    "null": logging.NullHandler(),
}
_loggers: Dict[str, logging.Logger] = {}


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """The handler of a name: "console" or "null". ValueError for another."""
    if destination not in _HANDLERS:
        known = ", ".join(sorted(_HANDLERS))
        raise ValueError(f"events: expected a handler among {known}, got {destination!r}")
    return _HANDLERS[destination]


def record(event: Event, destination: str = "null") -> None:
    """Give an event to a handler."""
    handler = get_logging_handler(destination)
    if destination not in _loggers:
        made = logging.getLogger(f"{__name__}.{destination}")
        made.setLevel(logging.INFO)
        made.propagate = False
        made.addHandler(handler)
        _loggers[destination] = made
    event.timestamp = event.timestamp or int(time.time() * 1000)
    _loggers[destination].info(event.serialize())


__all__ = ["Event", "EventSource", "get_logging_handler", "record"]
