"""Numbers that programs publish: each goes to the handler of its group, by default nowhere.

    configure(ConsoleMetricHandler())
    put_metric("examples", 512)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import sys
import time
from abc import ABC, abstractmethod
from typing import Any, Callable, Dict, NamedTuple, Optional


class MetricData(NamedTuple):
    """A number, when it was published (in seconds since 1970), and in which group."""

    timestamp: float
    group_name: str
    name: str
    value: float


class MetricHandler(ABC):
    """Takes numbers."""

    @abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Take a number."""


class ConsoleMetricHandler(MetricHandler):
    """Writes numbers to the standard output."""

    def emit(self, metric_data: MetricData) -> None:
        """Write a number."""
        when, group, name, value = metric_data
        sys.stdout.write(f"[{when}][{group}]: {name}={value}\n")


class NullMetricHandler(MetricHandler):
    """Forgets numbers."""

    def emit(self, metric_data: MetricData) -> None:
        """Forget a number."""
        del metric_data


class MetricStream:
    """The numbers of a group."""

    def __init__(self, group_name: str, handler: MetricHandler) -> None:
        self.group_name = group_name
        self.handler = handler

    def add_value(self, metric_name: str, metric_value: float) -> None:
        """Publish a number."""
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


_handlers: Dict[Optional[str], MetricHandler] = {None: NullMetricHandler()}


def configure(handler: MetricHandler, group: Optional[str] = None) -> None:
    """Choose the handler of a group, by default of all groups that have none."""
    _handlers[group] = handler


def getStream(group: str) -> MetricStream:  # noqa: N802
    """The numbers of a group."""
    return MetricStream(group, _handlers.get(group, _handlers[None]))


def put_metric(metric_name: str, metric_value: float, metric_group: str = "torchelastic") -> None:
    """Publish a number."""
    getStream(metric_group).add_value(metric_name, metric_value)


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """Milliseconds since a time of time.time()."""
    return int((time.time() - start_time_in_seconds) * 1000)


def prof(fn: Optional[Callable] = None, group: str = "torchelastic") -> Any:
    """Decorate a function: each call publishes `<name>.duration.ms`, and 1 as `<name>.success` or
    `<name>.failure`."""

    def decorate(function: Callable) -> Callable:
        name = function.__qualname__
        if "." not in name:
            name = f"{function.__module__.rpartition('.')[2]}.{name}"

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            start, outcome = time.time(), "failure"
            try:
                result = function(*args, **kwargs)
                outcome = "success"
                return result
            finally:
                put_metric(f"{name}.{outcome}", 1, group)
                put_metric(f"{name}.duration.ms", get_elapsed_time_ms(start), group)

        return call

    return decorate if fn is None else decorate(fn)


__all__ = [
    "ConsoleMetricHandler",
    "MetricData",
    "MetricHandler",
    "MetricStream",
    "NullMetricHandler",
    "configure",
    "getStream",
    "get_elapsed_time_ms",
    "prof",
    "put_metric",
]
