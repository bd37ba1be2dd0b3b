"""Actions of a pipeline and tables of them: what each rank does, in order.

>>> _Action.from_str("2F0")            # stage 2, forward, microbatch 0
2F0
>>> print(format_table(place_in_time({0: [F00, B00], 1: [F10, B10]}, 2)))
        Rank 0 Rank 1
Step 0: 0F0
Step 1:        1F0
Step 2:        1B0
Step 3: 0B0
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import csv
import re
from enum import Enum
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Set


class _ComputationType(str, Enum):
    """The kinds of work of a stage on a microbatch."""

    FORWARD = "F"
    FULL_BACKWARD = "B"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"


FORWARD = _ComputationType.FORWARD
FULL_BACKWARD = _ComputationType.FULL_BACKWARD
BACKWARD_INPUT = _ComputationType.BACKWARD_INPUT
BACKWARD_WEIGHT = _ComputationType.BACKWARD_WEIGHT

# The kinds after which the gradients of a stage's inputs are there.
GIVES_GRADIENT = (FULL_BACKWARD, BACKWARD_INPUT)
_FORM = re.compile(r"(\d+)([FBIW])(\d+)")


class _Action(NamedTuple):
    """One microbatch in one stage. Its text is stage, kind, microbatch: `2F0`."""

    stage_index: int
    computation_type: _ComputationType
    microbatch_index: int

    def __repr__(self) -> str:
        return f"{self.stage_index}{self.computation_type.value}{self.microbatch_index}"

    def __str__(self) -> str:
        return repr(self)

    @staticmethod
    def from_str(action_string: str) -> Optional[_Action]:
        """The action of a text; None for an empty one. RuntimeError for another text."""
        text = action_string.strip()
        if not text:
            return None
        found = _FORM.fullmatch(text)
        if found is None:
            raise RuntimeError(
                f"_Action: expected stage, F, B, I or W, and microbatch, as in 2F0, got {text!r}"
            )
        return _Action(int(found[1]), _ComputationType(found[2]), int(found[3]))


# For each rank what it does. A table in time has None where the rank is idle for a step.
Table = Dict[int, List[_Action]]
TimedTable = Dict[int, List[Optional[_Action]]]


def needs(action: _Action, num_stages: int) -> List[_Action]:
    """The actions whose results this one takes, of its own stage and of its neighbours."""
    stage, kind, microbatch = action
    if kind is FORWARD:
        return [_Action(stage - 1, FORWARD, microbatch)] if stage else []
    if kind is BACKWARD_WEIGHT:
        return [_Action(stage, BACKWARD_INPUT, microbatch)]
    own = [_Action(stage, FORWARD, microbatch)]
    if stage == num_stages - 1:
        return own
    # The neighbour's gradient comes from its B or its I: one of both is in the table.
    return [*own, _Action(stage + 1, FULL_BACKWARD, microbatch)]


def _as_needed(action: _Action) -> _Action:
    """The action under the name that needs() gives it: I counts as B for the stage below."""
    return action._replace(computation_type=FULL_BACKWARD)


def place_in_time(
    table: Mapping[int, Sequence[Optional[_Action]]],
    num_stages: int,
    durations: Optional[Mapping[_ComputationType, int]] = None,
) -> TimedTable:
    """Each action at the first step at which what it needs is done; None where a rank waits. An
    action of n steps (`durations`, by default 1) stands n times.

    RuntimeError if no rank can go on, which would be a deadlock.
    """
    steps = durations or {}
    queues = {rank: [a for a in actions if a is not None] for rank, actions in table.items()}
    placed: TimedTable = {rank: [] for rank in table}
    done: Set[_Action] = set()
    position = dict.fromkeys(table, 0)
    left = dict.fromkeys(table, 0)
    while any(position[rank] < len(queues[rank]) for rank in table):
        ended: List[_Action] = []
        busy = False
        for rank, queue in queues.items():
            if position[rank] == len(queue):
                continue
            action = queue[position[rank]]
            if not left[rank]:
                if not all(need in done for need in needs(action, num_stages)):
                    placed[rank].append(None)
                    continue
                left[rank] = steps.get(action.computation_type, 1)
            busy = True
            placed[rank].append(action)
            left[rank] -= 1
            if not left[rank]:
                position[rank] += 1
                ended.append(action)
        if not busy:
            waiting = [str(q[position[r]]) for r, q in queues.items() if position[r] < len(q)]
            raise RuntimeError(
                f"pipeline: expected an action that can run, got {', '.join(waiting)}, "
                "which all wait for others"
            )
        done.update(ended)
        done.update(_as_needed(a) for a in ended if a.computation_type is BACKWARD_INPUT)
    return placed


def check_table(table: Mapping[int, Sequence[Optional[_Action]]], stages: int, batch: int) -> None:
    """ValueError unless every microbatch passes each stage once forward and once backward."""
    seen: Dict[_Action, int] = {}
    for actions in table.values():
        for action in actions:
            if action is not None:
                seen[action] = seen.get(action, 0) + 1
    for stage in range(stages):
        for microbatch in range(batch):
            counts = [seen.pop(_Action(stage, kind, microbatch), 0) for kind in _ComputationType]
            if counts not in ([1, 1, 0, 0], [1, 0, 1, 1]):
                raise ValueError(
                    "pipeline: expected one F and one B, or one F, I and W, of stage "
                    f"{stage} and microbatch {microbatch}, got {counts[0]} F, {counts[1]} B, "
                    f"{counts[2]} I, {counts[3]} W"
                )
    if seen:
        raise ValueError(
            f"pipeline: expected actions of {stages} stages and {batch} microbatches, "
            f"got {next(iter(seen))}"
        )


def format_table(table: Mapping[int, Sequence[Optional[_Action]]]) -> str:
    """The table as text: a row for each step, a column for each rank."""
    ranks = sorted(table)
    count = max((len(table[rank]) for rank in ranks), default=0)
    heads = ["", *(f"Rank {rank}" for rank in ranks)]
    digits = len(str(max(count - 1, 0)))
    rows = [heads]
    for step in range(count):
        cells = [str(table[r][step] or "") if step < len(table[r]) else "" for r in ranks]
        rows.append([f"Step {step:0{digits}d}:", *cells])
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = (" ".join(cell.ljust(width) for cell, width in zip(row, widths)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def write_csv(table: Mapping[int, Sequence[Optional[_Action]]], path: str) -> None:
    """Write a line for each rank."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for rank in sorted(table):
            writer.writerow(["" if action is None else str(action) for action in table[rank]])


def read_csv(path: str) -> TimedTable:
    """The table that write_csv() wrote."""
    with open(path, newline="", encoding="utf-8") as file:
        return {
            rank: [_Action.from_str(text) for text in line]
            for rank, line in enumerate(csv.reader(file))
        }
