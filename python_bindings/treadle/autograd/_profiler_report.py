"""The report of a recording: what took the time, the rates reached beside the machine's peak, and
what would make the program faster."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Optional

from treadle.autograd import _profiler_table

_WORTH_A_LINE = 0.05  # of the recorded time
_MOST_ROWS = 5
_NEAR_PEAK = 0.7
_ABOVE_PEAK = 1.2  # more than rounding and a quiet moment explain
_SHORT_CALL_US = 10.0
_MANY_CALLS = 100
_MUCH_OUTSIDE = 0.2


@dataclass
class _Row:
    """The calls of one operator. Times are in microseconds."""

    name: str
    calls: int = 0
    time: float = 0.0  # without the operators inside
    allocations: int = 0
    moved: int = 0  # bytes
    moving_time: float = 0.0  # of the calls whose bytes are known
    flops: int = 0
    computing_time: float = 0.0  # of the calls whose operations are counted

    @property
    def bandwidth(self) -> Optional[float]:
        """Bytes per second."""
        return self.moved / self.moving_time * 1e6 if self.moved and self.moving_time else None

    @property
    def arithmetic(self) -> Optional[float]:
        """Floating-point operations per second."""
        if not (self.flops and self.computing_time):
            return None
        return self.flops / self.computing_time * 1e6


def _rows(events: list[Any]) -> list[_Row]:
    """Operators, the longest time first."""
    from treadle.utils import _flop_calls, flop_counter

    places = {id(event): place for place, event in enumerate(events)}
    calls = [(event.name, _kind(event), places.get(id(event.cpu_parent), -1)) for event in events]
    known = _flop_calls.by_name(flop_counter.flop_registry)
    rows: dict[str, _Row] = {}
    for event, found in zip(events, _flop_calls.formulas(calls, known)):
        if _kind(event) != _flop_calls.OPERATOR:
            continue
        row = rows.setdefault(event.name, _Row(event.name))
        row.calls += 1
        row.time += event.self_cpu_time_total
        row.allocations += event.self_allocations
        if event.bytes_moved:
            row.moved += event.bytes_moved
            row.moving_time += event.cpu_time_total
        if found is not None:
            arguments = event.input_shapes, event.input_types, event.concrete_inputs
            row.flops += _flop_calls.flops_of(found[1], event.name, *arguments)
            row.computing_time += event.cpu_time_total
    return sorted(rows.values(), key=lambda row: -row.time)


def _kind(event: Any) -> int:
    from treadle.utils import _flop_calls

    if event.is_user_annotation:
        return _flop_calls.RANGE
    return _flop_calls.BACKWARD if event.scope == 1 else _flop_calls.OPERATOR


def _in_operators(events: list[Any]) -> float:
    """The time of the recording's first thread in operators."""
    from treadle.utils._flop_calls import OPERATOR

    first = min((event.thread for event in events), default=0)
    total = 0.0
    for event in events:
        if event.thread == first and _kind(event) == OPERATOR:
            around = event.cpu_parent
            while around is not None and _kind(around) != OPERATOR:
                around = around.cpu_parent
            if around is None:
                total += event.cpu_time_total
    return total


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole > 0 else "0 %"


def _rate(rate: Optional[float], peak: float) -> tuple[str, str]:
    """In 1e9 per second, and as a share of the peak."""
    if rate is None:
        return "", ""
    return f"{rate / 1e9:.3g}", _percent(rate, peak)


def report(all_events: list[Any], recorded_us: float, row_limit: int) -> str:
    """The text, with a line end after each line. recorded_us: how long was recorded."""
    from treadle.profiler._roofline import roofline

    events = [event for event in all_events if event.device_type.name == "CPU"]
    peak = roofline()
    rows = _rows(events)
    inside = min(_in_operators(events), recorded_us)
    outside = recorded_us - inside
    text = _profiler_table.time_text
    allocations = sum(row.allocations for row in rows)
    lines = [
        f"Recorded: {text(recorded_us)}; in operators: {text(inside)} "
        f"({_percent(inside, recorded_us)}), outside them: {text(outside)} "
        f"({_percent(outside, recorded_us)}).",
        f"Peak of this machine, threads: {peak.threads}: {peak.bytes_per_second / 1e9:.3g} GB/s of "
        f"memory, {peak.flops_per_second / 1e9:.3g} GFLOP/s of float32.",
        f"Allocations in operators: {allocations}.",
        "",
    ]
    heads = (
        "Operator", "Calls", "Self time", "Share", "GB/s", "of peak", "GFLOP/s", "of peak",
        "Allocations",
    )  # fmt: skip
    cells = [heads]
    for row in rows[: row_limit if row_limit >= 0 else None]:
        cells.append(
            (
                row.name,
                str(row.calls),
                text(row.time),
                _percent(row.time, recorded_us),
                *_rate(row.bandwidth, peak.bytes_per_second),
                *_rate(row.arithmetic, peak.flops_per_second),
                str(row.allocations),
            )  # fmt: skip
        )
    widths = [max(map(len, column)) for column in zip(*cells)]
    for cell in cells:
        line = f"{cell[0]:<{widths[0]}}" + "".join(
            f"  {c:>{w}}" for c, w in zip(cell[1:], widths[1:])
        )
        lines.append(line.rstrip())
    if len(rows) > len(cells) - 1:
        lines.append(f"... and {len(rows) - len(cells) + 1} more")
    advice = _advice(rows, recorded_us, outside, peak)
    if advice:
        lines += ["", "What would make it faster:", *(f"* {line}" for line in advice)]
    return "\n".join(lines) + "\n"


def _advice(rows: list[_Row], recorded_us: float, outside: float, peak: Any) -> list[str]:
    lines = []
    if any((row.arithmetic or 0.0) > _ABOVE_PEAK * peak.flops_per_second for row in rows):
        lines.append(
            "An operator was faster than this machine's peak: other programs ran when that was "
            "measured. treadle.profiler.roofline(measure=True) measures it again."
        )
    if outside > _MUCH_OUTSIDE * recorded_us:
        lines.append(
            f"{_percent(outside, recorded_us)} of the time is outside operators: in Python, in "
            "loading data, in waiting. Recording with_stack=True shows the lines of the program."
        )
    large = [row for row in rows if row.time >= _WORTH_A_LINE * recorded_us][:_MOST_ROWS]
    named: dict[str, list[str]] = {}  # what is said, and of which operators
    for row in large:
        share = _percent(row.time, recorded_us)
        named.setdefault(_advice_for(row, peak), []).append(f"{row.name} ({share})")
    return lines + [f"{', '.join(names)}: {text}" for text, names in named.items()]


def _advice_for(row: _Row, peak: Any) -> str:
    bandwidth = (row.bandwidth or 0.0) / peak.bytes_per_second
    arithmetic = (row.arithmetic or 0.0) / peak.flops_per_second
    if row.time / row.calls < _SHORT_CALL_US and row.calls >= _MANY_CALLS:
        return "many calls of a few microseconds: fewer calls on more elements cost less."
    if arithmetic >= _NEAR_PEAK:
        return "near the peak of arithmetic: only less work takes less time."
    if bandwidth >= _NEAR_PEAK:
        return (
            "limited by memory: in-place forms, out=, smaller elements or one operator in place of "
            "several move fewer bytes."
        )
    cores = len(os.sched_getaffinity(0))
    if peak.threads < cores:
        return (
            f"below the peak with {peak.threads} of {cores} cores: treadle.set_num_threads({cores})"
            " uses all."
        )
    return (
        "far from both peaks: contiguous arguments, more elements in a call or another operator "
        "for the same result may be faster."
    )
