"""Agents that meet at a store, from a minimum to a maximum of them.

A meeting is complete when the maximum is there, or the minimum has been there for some time and
nobody else has come. Each agent counts up a number of its own in the store; an agent whose number
stands still is gone, and the others meet again without it.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from typing import Any, Callable, Dict, Optional, Tuple

from treadle.distributed.elastic.rendezvous import _state
from treadle.distributed.elastic.rendezvous._state import State
from treadle.distributed.elastic.rendezvous.api import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousGracefulExitError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStateError,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)
from treadle.distributed.errors import DistError
from treadle.distributed.store import PrefixStore, Store

_POLL = 0.05  # seconds between looks at the state
_KEY = "state"


class DynamicRendezvousHandler(RendezvousHandler):
    """Lets an agent meet others at a store, which the workers use too, at the address `address`.

    Settings: `join_timeout` (600 s) is how long an agent waits for the minimum, `last_call_timeout`
    (30 s) how long the minimum waits for more, `keep_alive_interval` (5 s) how often an agent says
    that it is there, `keep_alive_max_attempt` (3) how often it may miss that.
    """

    def __init__(
        self,
        backend: str,
        store: Store,
        address: Tuple[str, int],
        params: RendezvousParameters,
        number: Optional[int] = None,
    ) -> None:
        self._backend = backend
        self._root = store
        self._store = PrefixStore(f"rendezvous/{params.run_id}", store)
        self._address = address
        self._params = params
        who = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._me = f"{'' if number is None else number}#{who}"
        self._round = -1  # the last that it took part in
        self._join_seconds = _seconds(params, "join_timeout", _seconds(params, "timeout", 600))
        self._last_call = _seconds(params, "last_call_timeout", 30)
        self._interval = _seconds(params, "keep_alive_interval", 5)
        self._attempts = _seconds(params, "keep_alive_max_attempt", 3)
        self._seen: Dict[str, Tuple[bytes, float]] = {}  # the numbers of others, and since when
        self._looked = 0.0
        self._ending = threading.Event()
        self._alive: Optional[threading.Thread] = None

    # ---- The state ----

    def _read(self) -> Tuple[State, bytes]:
        try:
            data = self._store.compare_set(_KEY, "", State().text())
            return State.read(data), data
        except DistError as error:
            raise RendezvousConnectionError(
                f"rendezvous: expected an answer of the store of agents, got none ({error})"
            ) from None
        except (ValueError, TypeError) as error:
            raise RendezvousStateError(f"rendezvous: the state cannot be read: {error}") from None

    def _change(self, change: Callable[[State], Optional[State]]) -> State:
        """Change the state; the state then."""
        while True:
            state, data = self._read()
            changed = change(state)
            if changed is None:
                return state
            text = changed.text()
            try:
                if self._store.compare_set(_KEY, data, text) == text.encode():
                    return changed
            except DistError as error:
                raise RendezvousConnectionError(
                    f"rendezvous: expected an answer of the store of agents, got none ({error})"
                ) from None

    def _keep_alive(self) -> None:
        store = self._store.clone()
        try:
            while True:
                store.add(f"alive/{self._me}", 1)
                if self._ending.wait(self._interval):
                    return
        except Exception:
            return  # the store is gone, which next_rendezvous() and the agent find out as well
        finally:
            store.close()

    def _drop_the_dead(self, state: State) -> State:
        """The state without the agents that have not said for long that they are there."""
        now = time.monotonic()
        if now - self._looked < self._interval / 2:
            return state
        self._looked = now
        for agent in {*state.agents, *state.waiting} - {self._me, *state.finished}:
            key = f"alive/{agent}"
            number = self._store.get(key) if self._store.check([key]) else b""
            before, since = self._seen.get(agent, (None, now))
            if number != before:
                self._seen[agent] = (number, now)
            elif now - since > self._interval * self._attempts:
                state = self._without(agent)
        return state

    # ---- Meeting ----

    def next_rendezvous(self) -> RendezvousInfo:
        """Meet the others: waits for them."""
        if self._alive is None:
            self._alive = threading.Thread(target=self._keep_alive, name="alive", daemon=True)
            self._alive.start()
        most = self._params.max_nodes
        seen, end = self._round, time.monotonic() + self._join_seconds
        quiet_since, count = time.monotonic(), 0
        while True:
            state = self._change(lambda s: _state.opened(s, seen, most))
            if not state.closed:
                state = self._change(lambda s: _state.joined(s, self._me, most))
                state = self._drop_the_dead(state)
            if state.closed:
                if state.agents and set(state.agents) <= set(state.finished):
                    raise RendezvousGracefulExitError("rendezvous: the run has succeeded")
                raise RendezvousClosedError(f"rendezvous: the run {self.get_run_id()} has ended")
            if state.complete and self._me in state.agents and state.round != seen:
                return self._info(state)
            now = time.monotonic()
            if len(state.agents) != count:
                quiet_since, count = now, len(state.agents)
            if not state.complete and self._me in state.agents:
                is_quiet = now - quiet_since >= self._last_call
                if count >= most or (count >= self._params.min_nodes and is_quiet):
                    self._change(_state.completed)
                    continue
            if now > end:
                self.leave()
                raise RendezvousTimeoutError(
                    f"rendezvous: expected {self._params.min_nodes} agents within "
                    f"{self._join_seconds:g} s, got {count}"
                )
            time.sleep(_POLL)

    def _info(self, state: State) -> RendezvousInfo:
        self._round = state.round
        address = RendezvousStoreInfo(*self._address)
        store = PrefixStore(f"round/{state.round}", self._store)
        return RendezvousInfo(store, state.agents.index(self._me), len(state.agents), address)

    def get_backend(self) -> str:
        """The name of the way to meet."""
        return self._backend

    @property
    def use_agent_store(self) -> bool:
        """Whether the store of the workers is that of the agents: yes."""
        return True

    def is_closed(self) -> bool:
        """Whether the run has ended."""
        return self._read()[0].closed

    def set_closed(self) -> None:
        """End the run for all agents."""
        self._change(_state.closed)

    def num_nodes_waiting(self) -> int:
        """How many agents wait for a meeting; at least 1 if the others are at the next one."""
        state = self._drop_the_dead(self._read()[0])
        return len(state.waiting) + int(state.round != self._round)

    def get_run_id(self) -> str:
        """The name of the run."""
        return self._params.run_id

    def finish(self) -> bool:
        """The workers of this agent have succeeded. Whether those of all agents have."""
        state = self._change(lambda s: _state.finished(s, self._me, self._round))
        state = self._drop_the_dead(state)
        return set(state.agents) <= set(state.finished) and state.round == self._round

    def _without(self, agent: str) -> State:
        return self._change(lambda s: _state.without(s, agent, self._params.max_nodes))

    def leave(self) -> bool:
        """This agent takes no part any more; the others meet again without it."""
        self._without(self._me)
        return True

    def shutdown(self) -> bool:
        """Let go of the store. The agent that serves it waits until the others have, for a short
        time."""
        self._ending.set()
        if self._alive is not None:
            self._alive.join(1)
        try:
            self._root.close()
            return True
        except Exception:
            return False


def _seconds(params: RendezvousParameters, name: str, default: float) -> float:
    value: Any = params.get(name, default)
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1.0
    if found < 0:
        raise ValueError(f"rendezvous: expected {name} as a number of seconds, got {value!r}")
    return found


__all__ = ["DynamicRendezvousHandler"]
