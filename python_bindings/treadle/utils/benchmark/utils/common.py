"""The statement that was timed, and how long it took."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

from treadle import _C

_UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


def select_unit(t: float) -> Tuple[str, float]:
    """The unit in which a time in seconds is at least one, and how long it is."""
    fitting = [unit for unit in _UNITS if t >= unit[1]] or [_UNITS[0]]
    return fitting[-1]


def unit_to_english(u: str) -> str:
    """The word for a unit."""
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """The number with n digits that say something."""
    if x == 0 or not math.isfinite(x):
        return x
    return round(x, n - 1 - math.floor(math.log10(abs(x))))


def ordered_unique(elements: Iterable[Any]) -> List[Any]:
    """Each once, in the order in which they came."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Within it operators use n threads."""
    before = _C.get_num_threads()
    _C.set_num_threads(n)
    try:
        yield
    finally:
        _C.set_num_threads(before)


@dataclass(frozen=True)
class TaskSpec:
    """The statement that is timed."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: Optional[str] = None
    sub_label: Optional[str] = None
    description: Optional[str] = None
    env: Optional[str] = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """A name for it."""
        name = self.label or self.stmt.strip().replace("\n", "; ")
        return f"{name}: {self.sub_label}" if self.sub_label else name


def _at(ordered: Sequence[float], part: float) -> float:
    """The number at a part of the way through sorted numbers."""
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass
class Measurement:
    """How long `number_per_run` runs took, several times; times are for one run, in seconds."""

    number_per_run: int
    raw_times: List[float]
    task_spec: TaskSpec
    metadata: Optional[Dict[Any, Any]] = field(default=None)

    @property
    def times(self) -> List[float]:
        """The time of one run, for each measurement."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The middle one."""
        return _at(sorted(self.times), 0.5)

    @property
    def mean(self) -> float:
        """The mean."""
        return sum(self.times) / len(self.times)

    @property
    def iqr(self) -> float:
        """How far apart the quarters are between which the middle half lies."""
        ordered = sorted(self.times)
        return _at(ordered, 0.75) - _at(ordered, 0.25)

    @property
    def has_warnings(self) -> bool:
        """Whether the times are so far apart that the middle says little."""
        return self.iqr > 0.25 * self.median

    @property
    def title(self) -> str:
        """A name for what was timed."""
        return self.task_spec.title

    @property
    def num_threads(self) -> int:
        """How many threads operators had."""
        return self.task_spec.num_threads

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        runs = f"{self.number_per_run} run{'s' if self.number_per_run > 1 else ''} per measurement"
        count = f"{len(self.times)} measurement{'s' if len(self.times) > 1 else ''}"
        lines = [
            f"<treadle.utils.benchmark.Measurement of {self.title}>",
            f"  Median: {self.median / scale:.2f} {unit}",
            f"  IQR:    {self.iqr / scale:.2f} {unit}",
            f"  {count}, {runs}, {self.num_threads} thread{'s' if self.num_threads > 1 else ''}",
        ]
        if self.has_warnings:
            lines.append("  Times are far apart: the middle half is wider than a quarter of it.")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable["Measurement"]) -> List["Measurement"]:
        """Those of the same task and number of runs put together."""
        found: Dict[Any, Measurement] = {}
        for m in measurements:
            key = (m.task_spec, m.number_per_run)
            times = found[key].raw_times if key in found else []
            found[key] = Measurement(m.number_per_run, [*times, *m.raw_times], m.task_spec)
        return list(found.values())
