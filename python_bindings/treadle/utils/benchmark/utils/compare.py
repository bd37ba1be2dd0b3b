"""Compare: measurements as a table, descriptions side by side."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
import sys
from typing import Any, List

from treadle.utils.benchmark.utils.common import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)


class Colorize(enum.Enum):
    """The parts that PyTorch's tables colour; these have no colours."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table for each label: a row for each sub-label and number of threads, a column for each
    description, medians in one unit."""

    def __init__(self, results: List[Measurement]) -> None:
        self._results: List[Measurement] = []
        self.extend_results(results)
        self._digits = 0

    def extend_results(self, results: List[Measurement]) -> None:
        """Add measurements; ValueError for what is none."""
        for result in results:
            if not isinstance(result, Measurement):
                kind = type(result).__name__
                raise ValueError(f"Compare: expected measurements, got {kind}")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show three digits that say something."""
        self._digits = 3

    def colorize(self, rowwise: bool = False) -> None:
        """Does nothing: the table has no colours."""

    def highlight_warnings(self) -> None:
        """Does nothing: the table has no colours."""

    def _table(self, results: List[Measurement]) -> str:
        merged = Measurement.merge(results)
        unit, scale = select_unit(min(m.median for m in merged))
        columns = ordered_unique(m.task_spec.description or "" for m in merged)
        rows = ordered_unique((m.num_threads, m.task_spec.sub_label or "") for m in merged)
        cells: Any = {}
        for m in merged:
            value = m.median / scale
            value = trim_sigfig(value, self._digits) if self._digits else round(value, 1)
            key = (m.num_threads, m.task_spec.sub_label or "", m.task_spec.description or "")
            cells[key] = str(value)
        names = {row: f"{row[1]} ({row[0]} thread{'s' if row[0] > 1 else ''})" for row in rows}
        head = max(map(len, names.values()))
        title = merged[0].task_spec.label or merged[0].task_spec.stmt
        lines = [f"[ {title} ]"]
        widths = {c: max(len(c), *(len(cells.get((*row, c), "")) for row in rows)) for c in columns}
        lines.append(" | ".join([" " * head, *(c.rjust(widths[c]) for c in columns)]))
        for row in rows:
            values = (cells.get((*row, c), "").rjust(widths[c]) for c in columns)
            lines.append(" | ".join([names[row].ljust(head), *values]))
        return "\n".join([*lines, "", f"Times are in {unit_to_english(unit)}s ({unit})."])

    def __str__(self) -> str:
        labels = ordered_unique(m.task_spec.label for m in self._results)
        groups = [[m for m in self._results if m.task_spec.label == label] for label in labels]
        return "\n\n".join(map(self._table, groups))

    def print(self) -> None:
        """Write the tables to the output of the program."""
        sys.stdout.write(f"{self}\n")
