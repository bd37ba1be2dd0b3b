"""The common knowledge of the agents of a run: one value of the store, which they change by
compare_set().

A meeting has a round. Agents join while it is open; then it is complete, and its agents have
numbers. An agent that wants another meeting opens the next round. All functions here return a
changed copy, or None where nothing changes.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import List, Optional


@dataclass
class State:
    """The state of a run."""

    round: int = 0
    closed: bool = False
    complete: bool = False
    agents: List[str] = field(default_factory=list)  # of the round; a complete one's in their order
    waiting: List[str] = field(default_factory=list)  # for the next round
    finished: List[str] = field(default_factory=list)  # whose workers have succeeded
    before: List[str] = field(default_factory=list)  # the agents of the last complete round

    @staticmethod
    def read(data: bytes) -> State:
        """The state that text() wrote."""
        return State(**json.loads(data)) if data else State()

    def text(self) -> str:
        """The state, for a store."""
        return json.dumps(asdict(self))


def joined(state: State, agent: str, most: int) -> Optional[State]:
    """An agent joins the open round, or waits for the next one."""
    if agent in (*state.agents, *state.waiting) or len(state.agents) >= most:
        return None
    if state.complete:
        return replace(state, waiting=[*state.waiting, agent])
    return replace(state, agents=[*state.agents, agent])


def completed(state: State) -> Optional[State]:
    """No more agents join the round. Agents that say a number come in the order of these. Others
    keep their order, with new ones at the end: rank 0 has been there for the longest time."""
    if state.complete:
        return None

    def place(agent: str) -> int:
        said = agent.partition("#")[0]
        known = state.before
        return int(said) if said else known.index(agent) if agent in known else len(known)

    return replace(state, complete=True, agents=sorted(state.agents, key=place), finished=[])


def opened(state: State, seen: int, most: int) -> Optional[State]:
    """The round after the round `seen`, with those who wait for it."""
    if state.round != seen or not state.complete:
        return None
    first, rest = state.waiting[:most], state.waiting[most:]
    return State(state.round + 1, state.closed, False, first, rest, before=state.agents)


def finished(state: State, agent: str, seen: int) -> Optional[State]:
    """The workers of an agent have succeeded in the round `seen`."""
    if state.round != seen or agent in state.finished:
        return None
    return replace(state, finished=[*state.finished, agent])


def without(state: State, agent: str, most: int) -> Optional[State]:
    """An agent is gone. If it took part in a complete round, and is needed, the next one opens."""
    if agent in state.waiting:
        return replace(state, waiting=[each for each in state.waiting if each != agent])
    if agent not in state.agents:
        return None
    left = replace(state, agents=[each for each in state.agents if each != agent])
    if not state.complete or agent in state.finished:
        return left
    return opened(left, left.round, most)


def closed(state: State) -> Optional[State]:
    """The run has ended."""
    return None if state.closed else replace(state, closed=True)
