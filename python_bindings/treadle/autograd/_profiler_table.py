"""Events as a table of text: a line of dashes, a line of names, and a line for each event."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Iterable, Optional

_WIDTH = 12
_GAP = "  "
_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def time_text(us: float, unit: Optional[str] = None) -> str:
    """A time in microseconds, in a unit that fits it."""
    if unit not in _UNITS:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    return f"{us / _UNITS[unit]:.3f}{unit}"


def memory_text(nbytes: int) -> str:
    """A number of bytes, in a unit that fits it."""
    for unit, size in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def _share(part: float, whole: float) -> str:
    return f"{part * 100 / whole:.2f}%" if whole else "NaN"


class _Column:
    """A name, and for each event a cell of at most `width` characters."""

    def __init__(
        self, name: str, cells: list[str], width: int = _WIDTH, left: bool = False
    ) -> None:
        self.name = name
        self.cells = cells
        self.width = width
        self._align = "<" if left else ">"

    def cell(self, text: str) -> str:
        return f"{text:{self._align}{self.width}}{_GAP}"


def _width(texts: Iterable[str], limit: Optional[int]) -> int:
    needed = max((len(text) for text in texts), default=0) + 4
    return needed if limit is None else min(needed, limit)


def _name(text: str, limit: Optional[int]) -> str:
    if limit is not None and len(text) >= limit - 3:
        return text[: limit - 3] + "..."
    return text


def _path(text: str, width: int) -> str:
    """The end of a path that is too long."""
    return text if len(text) <= width else "..." + text[len(text) - width + 3 :]


def _flops_column(events: list) -> Optional[_Column]:
    known = [event.flops for event in events if event.flops > 0]
    if not known:
        return None
    names = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
    power = max(0, min(int(math.log10(min(known)) / 3), len(names) - 1))
    cells = [f"{e.flops / 1000**power:8.3f}" if e.flops > 0 else "--" for e in events]
    return _Column(f"Total {names[power]}", cells)


def table(
    events: list[Any],
    *,
    row_limit: float,
    source_width: Optional[int],
    name_width: Optional[int],
    shapes_width: Optional[int],
    header: Optional[str],
    memory: bool,
    flops: bool,
    top_level: bool,
    time_unit: Optional[str],
) -> str:
    """The text, with a line end after each line."""
    if not events:
        return ""
    total = sum(event.self_cpu_time_total for event in events)
    # Work of a device is an event, and is counted again at the operator that queued it.
    device_total = sum(e.self_device_time_total for e in events if e.device_type.name == "CUDA")
    # Widths come from all events, so that tables of one recording look alike.
    name_column = _width((event.key for event in events), name_width)
    shapes = [str(event.input_shapes) for event in events]
    has_shapes = any(event.input_shapes for event in events)
    source_column = _width((line for event in events for line in event.stack), source_width)
    rows = [event for event in events if not (top_level and event.cpu_parent is not None)]
    rows = rows if row_limit >= len(rows) else rows[: int(row_limit)]

    columns = [
        _Column("Name", [_name(e.key, name_width) for e in rows], name_column),
        _Column("Self CPU %", [_share(e.self_cpu_time_total, total) for e in rows]),
        _Column("Self CPU", [time_text(e.self_cpu_time_total, time_unit) for e in rows]),
        _Column("CPU total %", [_share(e.cpu_time_total, total) for e in rows]),
        _Column("CPU total", [time_text(e.cpu_time_total, time_unit) for e in rows]),
        _Column("CPU time avg", [time_text(e.cpu_time, time_unit) for e in rows]),
    ]
    if memory:
        columns += [
            _Column("CPU Mem", [memory_text(e.cpu_memory_usage) for e in rows]),
            _Column("Self CPU Mem", [memory_text(e.self_cpu_memory_usage) for e in rows]),
        ]
    if device_total:
        columns += [
            _Column("Self CUDA", [time_text(e.self_device_time_total, time_unit) for e in rows]),
            _Column("Self CUDA %", [_share(e.self_device_time_total, device_total) for e in rows]),
            _Column("CUDA total", [time_text(e.device_time_total, time_unit) for e in rows]),
            _Column("CUDA time avg", [time_text(e.device_time, time_unit) for e in rows], 13),
        ]
    columns.append(_Column("# of Calls", [str(e.count) for e in rows]))
    if has_shapes:
        width = _width(shapes, shapes_width)
        columns.append(_Column("Input Shapes", [str(e.input_shapes)[:width] for e in rows], width))
    has_stacks = any(event.stack for event in events)
    if has_stacks:
        cells = [_path(e.stack[0], source_column) if e.stack else "" for e in rows]
        columns.append(_Column("Source Location", cells, source_column, left=True))
    flops_column = _flops_column(rows) if flops else None
    if flops_column:
        columns.append(flops_column)

    line = "".join("-" * column.width + _GAP for column in columns)
    banner = "=" * (len(line) - len(_GAP))
    lines = [] if header is None else [banner, header]
    if top_level:
        lines += [banner, "This report only display top-level ops statistics"]
    lines += [line, "".join(column.cell(column.name) for column in columns), line]
    for number, event in enumerate(rows):
        lines.append("".join(column.cell(column.cells[number]) for column in columns))
        if has_stacks:
            for text in [*(_path(s, source_column) for s in event.stack[1:]), ""]:
                lines.append(_stack_line(columns, text))
    lines += [line, f"Self CPU time total: {time_text(total, time_unit)}"]
    if device_total:
        lines.append(f"Self CUDA time total: {time_text(device_total, time_unit)}")
    return "\n".join(lines) + "\n"


def _stack_line(columns: list[_Column], text: str) -> str:
    """A line that continues the column of stacks."""
    return "".join(
        column.cell(text if column.name == "Source Location" else "") for column in columns
    )
