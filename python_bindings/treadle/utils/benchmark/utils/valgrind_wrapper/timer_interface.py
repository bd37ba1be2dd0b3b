"""How many instructions functions took: counts that can be added, compared and changed.

    before = FunctionCounts((FunctionCount(10, "f.cc:f"), FunctionCount(5, "g.cc:g")), False)
    print(after - before)

The counts come from the program; Timer here takes times and does not count.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pickle
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Tuple, Union

from treadle.utils.benchmark.utils.common import TaskSpec


class FunctionCount(NamedTuple):
    """A function and its instructions."""

    count: int  # type: ignore[assignment]
    function: str


@dataclass(repr=False, eq=False, frozen=True)
class FunctionCounts:
    """Instructions of functions, the most first. inclusive: with those of functions that they call;
    truncate_rows: whether the middle of a long list is left out where it is printed."""

    _data: Tuple[FunctionCount, ...]
    inclusive: bool
    truncate_rows: bool = True

    def __iter__(self) -> Iterator[FunctionCount]:
        yield from self._data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, item: Any) -> Union[FunctionCount, "FunctionCounts"]:
        data = self._data[item]
        return self._with(data) if isinstance(item, slice) else data

    def _with(self, data: Any) -> "FunctionCounts":
        return FunctionCounts(tuple(data), self.inclusive, self.truncate_rows)

    def __repr__(self) -> str:
        rows = list(self)
        hidden = self.truncate_rows and len(rows) > 18
        shown = [*rows[:9], *rows[-9:]] if hidden else rows
        width = max((len(str(row.count)) for row in shown), default=1)
        lines = [f"  {row.count:>{width}}  {row.function}" for row in shown]
        if hidden:
            lines.insert(9, "  ...")
        return "\n".join([*lines, "", f"Total: {self.sum()}"])

    def __add__(self, other: "FunctionCounts") -> "FunctionCounts":
        return self._merged(other, 1)

    def __sub__(self, other: "FunctionCounts") -> "FunctionCounts":
        return self._merged(other, -1)

    def __mul__(self, other: Any) -> "FunctionCounts":
        return self._from({row.function: int(row.count * other) for row in self})

    def _merged(self, other: "FunctionCounts", sign: int) -> "FunctionCounts":
        if self.inclusive != other.inclusive:
            raise ValueError("FunctionCounts: expected both inclusive or both not, got one of each")
        found: Dict[str, int] = defaultdict(int)
        for rows, factor in ((self, 1), (other, sign)):
            for row in rows:
                found[row.function] += factor * row.count
        return self._from(found)

    def _from(self, counts: Dict[str, int]) -> "FunctionCounts":
        rows = (FunctionCount(count, function) for function, count in counts.items() if count)
        return self._with(sorted(rows, reverse=True))

    def transform(self, map_fn: Callable[[str], str]) -> "FunctionCounts":
        """Under changed names; counts of the same name add up."""
        found: Dict[str, int] = defaultdict(int)
        for row in self:
            found[map_fn(row.function)] += row.count
        return self._from(found)

    def filter(self, filter_fn: Callable[[str], bool]) -> "FunctionCounts":
        """Those whose name fulfils a condition."""
        return self._with(row for row in self if filter_fn(row.function))

    def sum(self) -> int:
        """All instructions."""
        return sum(row.count for row in self)

    def denoise(self) -> "FunctionCounts":
        """Without functions of Python's dicts, whose numbers differ from run to run."""
        return self.filter(lambda function: "dictobject.c:lookdict_unicode" not in function)


@dataclass(repr=False, eq=False, frozen=True)
class CallgrindStats:
    """The counts for a statement, and for one that does nothing (the baseline)."""

    task_spec: TaskSpec
    number_per_run: int
    built_with_debug_symbols: bool
    baseline_inclusive_stats: FunctionCounts
    baseline_exclusive_stats: FunctionCounts
    stmt_inclusive_stats: FunctionCounts
    stmt_exclusive_stats: FunctionCounts
    stmt_callgrind_out: Optional[str]

    def __repr__(self) -> str:
        spec = self.task_spec
        return (
            f"{type(self).__name__} of {spec.title}\n  {self.counts(denoise=False)} instructions "
            f"in {self.number_per_run} runs, {spec.num_threads} thread"
            f"{'s' * (spec.num_threads > 1)}; baseline {self.baseline_exclusive_stats.sum()}"
        )

    def stats(self, inclusive: bool = False) -> FunctionCounts:
        """The counts of the statement; exclusive ones are without those of the baseline."""
        if inclusive:
            return self.stmt_inclusive_stats
        return self.stmt_exclusive_stats - self.baseline_exclusive_stats

    def counts(self, *, denoise: bool = False) -> int:
        """All instructions of the statement."""
        found = self.stmt_exclusive_stats
        return (found.denoise() if denoise else found).sum()

    def delta(self, other: "CallgrindStats", inclusive: bool = False) -> FunctionCounts:
        """The counts without those of another measurement."""
        return self.stats(inclusive) - other.stats(inclusive)

    def as_standardized(self) -> "CallgrindStats":
        """With the paths of files without the folders before them, so that two machines agree."""

        def short(counts: FunctionCounts) -> FunctionCounts:
            return counts.transform(lambda name: re.sub(r"^/\S*/(?=[^/\s]+:)", "", name))

        return CallgrindStats(
            self.task_spec, self.number_per_run, self.built_with_debug_symbols,
            short(self.baseline_inclusive_stats), short(self.baseline_exclusive_stats),
            short(self.stmt_inclusive_stats), short(self.stmt_exclusive_stats),
            self.stmt_callgrind_out,
        )  # fmt: skip


class CopyIfCallgrind:
    """A value of a Timer's globals that a counting process, which is another, is given a copy of.

    setup: a statement for that process before it reads the value. Raises ValueError for a value
    that cannot be copied so.
    """

    def __init__(self, value: Any, *, setup: Optional[str] = None) -> None:
        from treadle import nn

        module = isinstance(value, nn.Module)
        if not module:
            try:
                pickle.dumps(value)
            except Exception as error:
                raise ValueError(
                    f"CopyIfCallgrind: expected a value that can be pickled, got {value!r}"
                ) from error
        self._value, self._setup = value, setup

    @property
    def value(self) -> Any:
        """The value."""
        return self._value

    @property
    def setup(self) -> Optional[str]:
        """The statement."""
        return self._setup

    @staticmethod
    def unwrap_all(globals: Dict[str, Any]) -> Dict[str, Any]:  # noqa: A002
        """The values in place of those that are wrapped."""
        return {
            name: value.value if isinstance(value, CopyIfCallgrind) else value
            for name, value in globals.items()
        }


__all__ = ["CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts"]
