"""The tensors that go between stages on different ranks.

Every rank knows the table of all, so it knows in which order each peer sends to it. It begins its
receives in that order, some actions before it needs them, so that tensors travel while stages
compute. Tags tell the stages and the directions apart.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections import deque
from typing import Any, Deque, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from treadle import _C
from treadle import distributed as dist
from treadle._C import Tensor
from treadle.distributed.pipelining._actions import (
    BACKWARD_WEIGHT,
    FORWARD,
    GIVES_GRADIENT,
    Table,
    _Action,
)
from treadle.distributed.pipelining._shapes import Form, Forms, decode, encode

# How many actions ahead of its use a receive begins.
AHEAD = 2


class Message(NamedTuple):
    """The message to `stage`: the activations from the stage above it, or (`is_gradient`) the
    gradients of its outputs."""

    stage: int
    is_gradient: bool
    microbatch: int

    @property
    def tag(self) -> int:
        return 2 * self.stage + self.is_gradient


def taken_by(action: _Action, num_stages: int) -> Optional[Message]:
    """The message from another stage that an action takes."""
    stage, kind, microbatch = action
    if kind is FORWARD:
        return Message(stage, False, microbatch) if stage else None
    if kind is BACKWARD_WEIGHT or stage == num_stages - 1:
        return None
    return Message(stage, True, microbatch)


def given_by(action: _Action, num_stages: int) -> Optional[Message]:
    """The message to another stage that an action gives."""
    stage, kind, microbatch = action
    if kind is FORWARD:
        return Message(stage + 1, False, microbatch) if stage < num_stages - 1 else None
    return Message(stage - 1, True, microbatch) if kind in GIVES_GRADIENT and stage else None


class Transport:
    """The messages of one rank in one step. `ranks` says where each stage is; `forms` what comes to
    a stage in each direction, filled by the first message of the first step."""

    def __init__(
        self,
        rank: int,
        table: Table,
        ranks: Mapping[int, int],
        forms: Dict[Tuple[int, bool], Forms],
        devices: Mapping[int, Any],
        group: Any,
        ahead: int = AHEAD,
        most_sends: Optional[int] = None,
    ) -> None:
        self._rank = rank
        self._ranks = ranks
        self._forms = forms
        self._devices = devices
        self._group = group
        self._most_sends = most_sends
        self._local: Dict[Message, Sequence[Tensor]] = {}
        self._sends: Deque[List[Tuple[Any, Tensor]]] = deque()
        self._begun: Dict[Message, Tuple[List[Tensor], List[Any]]] = {}
        count = len(ranks)
        self._from: Dict[int, Deque[Message]] = {}
        for peer in table:
            mine = (m for a in table[peer] if (m := given_by(a, count)) and ranks[m.stage] == rank)
            self._from[peer] = deque(mine) if peer != rank else deque()
        needed = [taken_by(action, count) for action in table[rank]]
        # For each action the messages that are begun before it.
        self._windows = [
            [m for m in needed[at : at + ahead + 1] if m and self._source(m) != rank]
            for at in range(len(needed))
        ]

    def _source(self, message: Message) -> int:
        return self._ranks[message.stage + (1 if message.is_gradient else -1)]

    def begin(self, position: int) -> None:
        """Begin the receives of the action at this place of the table, and of some after it."""
        for message in self._windows[position]:
            if (message.stage, message.is_gradient) not in self._forms:
                return  # its form comes with it
            self._begin(message)

    def _begin(self, wanted: Message) -> None:
        """Begin the receives from its sender, in the order of the sends, up to this message."""
        source = self._source(wanted)
        waiting = self._from[source]
        while wanted not in self._begun:
            message = waiting[0]
            forms = self._forms_of(message, source)
            waiting.popleft()
            tensors = [form.empty(self._devices[message.stage]) for form in forms]
            works = [self._receive(tensor, source, message.tag) for tensor in tensors]
            self._begun[message] = (tensors, works)

    def _forms_of(self, message: Message, source: int) -> Forms:
        """The forms of the tensors of a message; the sender sends them before its first one."""
        key = (message.stage, message.is_gradient)
        if key not in self._forms:
            device = self._devices[message.stage]
            size = _C.empty(1, dtype=_C.int64, device=device)
            self._receive(size, source, message.tag).wait()
            data = _C.empty(int(size), dtype=_C.uint8, device=device)
            self._receive(data, source, message.tag).wait()
            self._forms[key] = decode(data)
        return self._forms[key]

    def _receive(self, tensor: Tensor, source: int, tag: int) -> Any:
        return dist.irecv(tensor, group=self._group, tag=tag, group_src=source)

    def expect_gradients(self, stage: int, forms: Sequence[Form]) -> None:
        """Say which gradients come to a stage: those of its outputs that have one."""
        self._forms[stage, True] = tuple(form for form in forms if form.has_gradient)

    def take(self, message: Message) -> Sequence[Tensor]:
        """The tensors of a message, as soon as they are there."""
        if message in self._local:
            return self._local.pop(message)
        self._begin(message)
        tensors, works = self._begun.pop(message)
        for work in works:
            work.wait()
        return tensors

    def give(self, message: Message, tensors: Sequence[Tensor], forms: Optional[Forms]) -> None:
        """Begin to send tensors, after their forms if the other stage does not know them yet."""
        peer = self._ranks[message.stage]
        if peer == self._rank:
            if forms is not None:
                self._forms[message.stage, message.is_gradient] = forms
            self._local[message] = tensors
            return
        parts = list(tensors)
        if forms is not None:
            head = encode(forms)
            size = _C.tensor([head.numel()], dtype=_C.int64)
            device = tensors[0].device if tensors else "cpu"
            parts = [size.to(device), head.to(device), *parts]
        self._sends.append(
            [
                (dist.isend(part, group=self._group, tag=message.tag, group_dst=peer), part)
                for part in parts
            ]
        )
        while self._most_sends is not None and len(self._sends) > self._most_sends:
            self._end_oldest()
        while self._sends and all(work.is_completed() for work, _ in self._sends[0]):
            self._end_oldest()

    def _end_oldest(self) -> None:
        for work, _ in self._sends.popleft():
            work.wait()

    def end(self) -> None:
        """Wait until all that was sent has gone."""
        while self._sends:
            self._end_oldest()
