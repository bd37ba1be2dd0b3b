"""The tables of the schedules: for each rank the order in which it runs its stages.

`ranks` is the number of ranks, `batch` that of microbatches, `local` that of stages on each rank.
Stages go around the ranks: stage s is on rank s % ranks. Only zbv() and dual_pipe_v() fold them:
rank r has stages r and 2 * ranks - 1 - r. Actions stand without gaps; place_in_time() adds those.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from treadle.distributed.pipelining._actions import (
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    FORWARD,
    FULL_BACKWARD,
    Table,
    _Action,
    _ComputationType,
)


def gpipe(ranks: int, batch: int) -> Table:
    """All forward, then all backward."""
    return {
        rank: [_Action(rank, kind, m) for kind in (FORWARD, FULL_BACKWARD) for m in range(batch)]
        for rank in range(ranks)
    }


def one_forward_one_backward(ranks: int, batch: int) -> Table:
    """Forward and backward by turns, as soon as the first gradient is back; so rank r keeps the
    activations of at most ranks - r microbatches."""
    table: Table = {}
    for rank in range(ranks):
        forward = [_Action(rank, FORWARD, m) for m in range(batch)]
        backward = [_Action(rank, FULL_BACKWARD, m) for m in range(batch)]
        table[rank] = _by_turns(forward, backward, min(ranks - 1 - rank, batch))
    return table


def looped_bfs(ranks: int, batch: int, local: int) -> Table:
    """Each stage runs all microbatches before the next one of the rank does."""
    table: Table = {}
    for rank in range(ranks):
        stages = [rank + ranks * place for place in range(local)]
        table[rank] = [_Action(s, FORWARD, m) for s in stages for m in range(batch)] + [
            _Action(s, FULL_BACKWARD, m) for s in reversed(stages) for m in reversed(range(batch))
        ]
    return table


def interleaved(ranks: int, batch: int, local: int, per_round: int) -> Table:
    """Forward and backward by turns. A round of `per_round` microbatches passes all stages of the
    rank before the next round begins."""
    table: Table = {}
    for rank in range(ranks):
        order = list(_rounds(batch, local, per_round))
        forward = [_Action(rank + ranks * place, FORWARD, m) for place, m in order]
        backward = [
            _Action(rank + ranks * (local - 1 - place), FULL_BACKWARD, m) for place, m in order
        ]
        ahead = (local - 1) * per_round + 2 * (ranks - 1 - rank)
        table[rank] = _by_turns(forward, backward, min(ahead, len(forward)))
    return table


def interleaved_zero_bubble(ranks: int, batch: int, local: int, per_round: int) -> Table:
    """As interleaved(), with the backward pass in two parts: that of the inputs, which the stage
    below waits for, goes first; rank r puts that of the weights off by r microbatches, into times
    in which it would wait."""
    table: Table = {}
    for rank in range(ranks):
        order = list(_rounds(batch, local, per_round))
        forward = [_Action(rank + ranks * place, FORWARD, m) for place, m in order]
        inputs = [
            _Action(rank + ranks * (local - 1 - place), BACKWARD_INPUT, m) for place, m in order
        ]
        weights = [a._replace(computation_type=BACKWARD_WEIGHT) for a in inputs]
        ahead = (local - 1) * per_round + ranks - 1 - rank
        actions: List[_Action] = []
        done = 0
        for action in _by_turns(forward, inputs, min(ahead, len(forward))):
            actions.append(action)
            if action.computation_type is BACKWARD_INPUT:
                actions += weights[done - rank : done - rank + 1] if done >= rank else []
                done += 1
        actions += weights[max(done - rank, 0) :]
        table[rank] = actions
    return table


def zbv(ranks: int, batch: int) -> Table:
    """Two stages on each rank, folded, so that rank 0 has the first and the last; the backward pass
    is in two parts, as in interleaved_zero_bubble(). The order is that of the paper "Zero Bubble
    Pipeline Parallelism", section 6, made for at least 2 * ranks - 1 microbatches; with fewer, what
    belongs to the others is left out."""
    table: Table = {}
    for rank in range(ranks):
        made = _Folded(rank, 2 * ranks - 1 - rank)
        whole = max(batch, 2 * ranks - 1)
        made.run("F0", 2 * (ranks - rank) - 1)
        made.run("F1 F0", rank)
        made.run("F1 I1 W1", ranks - rank)
        while made.count["F1"] < whole:
            made.run("F0" if made.count["F0"] < whole else "")
            made.run("I0 W0 F1 I1 W1")
        made.run("I0 I1", rank)
        made.run("I0 W0", ranks - rank)
        made.run("W1", whole - made.count["W1"])
        made.run("W0", whole - made.count["W0"])
        table[rank] = [action for action in made.actions if action.microbatch_index < batch]
    return table


def dual_pipe_v(ranks: int, batch: int) -> Table:
    """Two stages on each rank, folded. In the steady state a forward pass of one stage and a whole
    backward pass of the other follow each other; the backward pass is in two parts only at the
    beginning and the end, where ranks would wait. The order is that of DualPipeV, the folded form
    of DualPipe (arXiv 2412.19437). `batch` is at least 2 * ranks."""
    table: Table = {}
    for rank in range(ranks):
        made = _Folded(rank, 2 * ranks - 1 - rank)
        behind = ranks - 1 - rank  # ranks between this one and the fold
        made.run("F0", 2 * behind)
        made.run("F0 F1", rank + 1)
        made.run("I1 W F1", behind)
        made.run("F0 B1 F1 B0", batch - 2 * ranks + rank + 1)
        made.run("B1 F1 B0", behind)
        last = ["1", "0"] * (rank + 1)
        made.run(" ".join(f"B{stage}" for stage in last[: rank + 1]))
        made.run(" ".join(f"I{stage}" for stage in last[rank + 1 :]))
        made.run("W I0", behind)
        made.run("W", rank + 1)
        table[rank] = made.actions
    return table


class _Folded:
    """The actions of a rank with two stages, 0 and 1; counts each kind for each stage. B counts as
    I; W alone is the oldest one whose I is done."""

    def __init__(self, first: int, second: int) -> None:
        self._stages = (first, second)
        self.actions: List[_Action] = []
        self.count: Dict[str, int] = dict.fromkeys(("F0", "F1", "I0", "I1", "W0", "W1"), 0)
        self._waiting: List[_Action] = []

    def run(self, kinds: str, times: int = 1) -> None:
        """Add the next microbatch of each kind, so many times."""
        for kind in kinds.split() * times:
            if kind == "W":
                self.actions.append(self._waiting.pop(0))
                continue
            counted = kind.replace("B", "I")
            stage, microbatch = self._stages[int(kind[1])], self.count[counted]
            self.actions.append(_Action(stage, _ComputationType(kind[0]), microbatch))
            self.count[counted] += 1
            if kind[0] == "I":
                self._waiting.append(_Action(stage, BACKWARD_WEIGHT, microbatch))


def _rounds(batch: int, local: int, per_round: int) -> Iterator[Tuple[int, int]]:
    """The places among the rank's stages, and microbatches, in the order of rounds."""
    for begin in range(0, batch, per_round):
        for place in range(local):
            for microbatch in range(begin, begin + per_round):
                yield place, microbatch


def _by_turns(forward: List[_Action], backward: List[_Action], ahead: int) -> List[_Action]:
    """The first `ahead` of forward; then one of each by turns; then the rest of backward."""
    actions = forward[:ahead]
    for index, action in enumerate(backward):
        actions += forward[ahead + index : ahead + index + 1]
        actions.append(action)
    return actions
