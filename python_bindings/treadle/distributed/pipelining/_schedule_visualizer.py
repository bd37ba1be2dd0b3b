"""Pictures of schedules: a row for each rank, a box for each action, as SVG.

visualize_schedule(get_schedule_ops("1F1B", 4, 8), "1f1b.svg")
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Union
from xml.sax.saxutils import escape

from treadle.distributed.pipelining import _tables
from treadle.distributed.pipelining._actions import (
    Table,
    _Action,
    _ComputationType,
    place_in_time,
)
from treadle.distributed.pipelining.schedules import (
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
    get_schedule_class,
)

_COLOURS = {"F": "#9ecae1", "B": "#fdae6b", "I": "#fdd0a2", "W": "#a1d99b"}
_WIDTH, _HEIGHT, _LEFT, _TOP = 30, 24, 60, 30


def get_schedule_ops(
    schedule: Union[str, type],
    pp_degree: int,
    num_microbatches: int,
    num_stages_per_rank: Optional[int] = None,
    add_spacing: bool = False,
    with_comms: bool = False,
) -> List[List[Optional[_Action]]]:
    """The table of a schedule, by its class or name, for so many ranks and microbatches: for each
    rank a list of its actions, None where it waits. With `add_spacing` a B has the time of two
    actions.

    ValueError for an unknown schedule, or several stages for a schedule of one.
    """
    if with_comms:
        raise ValueError("get_schedule_ops: expected with_comms = False, as the table has no sends")
    found = get_schedule_class(schedule) if isinstance(schedule, str) else schedule
    is_single = found in (ScheduleGPipe, Schedule1F1B)
    local = (1 if is_single else 2) if num_stages_per_rank is None else num_stages_per_rank
    if is_single and local != 1:
        raise ValueError(f"get_schedule_ops: expected 1 stage for each rank, got {local}")
    durations = {_ComputationType.FULL_BACKWARD: 2} if add_spacing else None
    table = _table_of(found, pp_degree, num_microbatches, local)
    placed = place_in_time(table, pp_degree * local, durations)
    return [placed[rank] for rank in range(pp_degree)]


def _table_of(schedule: type, ranks: int, batch: int, local: int) -> Table:
    per_round = batch // max(1, batch // ranks)
    if schedule is ScheduleGPipe:
        return _tables.gpipe(ranks, batch)
    if schedule is Schedule1F1B:
        return _tables.one_forward_one_backward(ranks, batch)
    if schedule is ScheduleLoopedBFS:
        return _tables.looped_bfs(ranks, batch, local)
    if schedule is ScheduleInterleaved1F1B:
        return _tables.interleaved(ranks, batch, local, per_round)
    if schedule is ScheduleInterleavedZeroBubble:
        return _tables.interleaved_zero_bubble(ranks, batch, local, per_round)
    if schedule is ScheduleZBVZeroBubble:
        return _tables.zbv(ranks, batch)
    if schedule is ScheduleDualPipeV:
        return _tables.dual_pipe_v(ranks, batch)
    raise ValueError(f"get_schedule_ops: expected a schedule with a table, got {schedule}")


def draw(rows: Sequence[Sequence[Optional[_Action]]]) -> str:
    """A table as SVG, a row for each rank."""
    steps = max((len(row) for row in rows), default=0)
    width, height = _LEFT + steps * _WIDTH + 10, _TOP + len(rows) * _HEIGHT + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">'
    ]
    busy = sum(action is not None for row in rows for action in row)
    idle = 1 - busy / (steps * len(rows)) if busy else 0
    parts.append(f'<text x="4" y="18">{steps} steps, idle {100 * idle:.0f} %</text>')
    for rank, row in enumerate(rows):
        y = _TOP + rank * _HEIGHT
        parts.append(f'<text x="4" y="{y + 16}">Rank {rank}</text>')
        for step, action in enumerate(row):
            if action is not None:
                parts += _box(action, _LEFT + step * _WIDTH, y)
    return "\n".join([*parts, "</svg>", ""])


def _box(action: _Action, x: int, y: int) -> List[str]:
    colour = _COLOURS[action.computation_type.value]
    return [
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT - 2}" fill="{colour}" '
        'stroke="white"/>',
        f'<text x="{x + _WIDTH // 2}" y="{y + 15}" text-anchor="middle">{escape(str(action))}'
        "</text>",
    ]


def visualize_schedule(schedule: Any, filename: Optional[str] = None) -> str:
    """Draw a table, or a schedule that has one; returns the SVG, and writes it to a file if one is
    given."""
    table = getattr(schedule, "pipeline_order", schedule)
    picture = draw([table[rank] for rank in range(len(table))])
    if filename is not None:
        with open(filename, "w", encoding="utf-8") as file:
            file.write(picture)
    return picture
