"""A group of processes: its members, in order, and the messages between them.

Every call of a collective function takes the next number of its group, the same in all processes,
and messages carry it; so each finds the call that it belongs to, however the processes run.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections import defaultdict
from datetime import timedelta
from typing import Any, Callable, DefaultDict, Iterator, List, Optional, Sequence, Tuple

from treadle import _C
from treadle._C import Tensor
from treadle.autograd.grad_mode import no_grad
from treadle.distributed._mesh import Key, Mesh
from treadle.distributed.errors import DistBackendError, DistNetworkError
from treadle.distributed.work import Work

# The functions that exchange messages; a message says which one it is of.
KINDS = (
    "send",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
)


def bytes_of(tensor: Tensor) -> memoryview:
    """The memory of a contiguous tensor."""
    begin = tensor.storage_offset() * tensor.element_size()
    memory = memoryview(tensor.untyped_storage()).cast("B") if tensor.numel() else memoryview(b"")
    return memory[begin : begin + tensor.numel() * tensor.element_size()]


class ProcessGroup:
    """Some of the processes; `members` are their ranks in the whole."""

    def __init__(
        self, mesh: Mesh, channel: int, members: Sequence[int], timeout: timedelta
    ) -> None:
        self._mesh = mesh
        self._channel = channel
        self.members = tuple(members)
        self._me = self.members.index(mesh.rank)
        self.timeout = timeout
        self._calls = itertools.count()
        self._sent: DefaultDict[Tuple[int, int], Iterator[int]] = defaultdict(itertools.count)
        self._taken: DefaultDict[Tuple[int, int], int] = defaultdict(int)
        self._taking = threading.Lock()
        self._tasks: Optional[queue.SimpleQueue] = None

    def rank(self) -> int:
        """The place of this process among the members."""
        return self._me

    def size(self) -> int:
        """How many members there are."""
        return len(self.members)

    def name(self) -> str:
        """The name of the transport."""
        return "gloo"

    def member(self, function: str, rank: int) -> int:
        """The place of a rank of the whole among the members. ValueError if it is none."""
        if rank not in self.members:
            raise ValueError(
                f"{function}: expected a rank of the group {list(self.members)}, got {rank}"
            )
        return self.members.index(rank)

    def call(self, function: str) -> Call:
        """Begin the next call of a collective function."""
        return Call(self, function, next(self._calls))

    def start(self, task: Callable[[], None], tensors: List[Any], async_op: bool) -> Optional[Work]:
        """Do it, and return None; or begin it in the group's own thread, in order of the calls."""
        if not async_op:
            task()
            return None
        work = Work(tensors)
        if self._tasks is None:
            self._tasks = queue.SimpleQueue()
            name = f"group {self._channel}"
            threading.Thread(target=_do_all, args=(self._tasks,), name=name, daemon=True).start()
        self._tasks.put((work, task))
        return work

    def meet(
        self, call: Call, between: Callable[[], None] = lambda: None, names_all: bool = False
    ) -> None:
        """Return when all members have come; the first one does `between` before any returns. With
        `names_all` its error names all members that are missing, and not the first alone."""
        if self._me:
            call.send(0, b"")
            call.receive(0, step=1)
            return
        missing, deadline = [], time.monotonic() + self.timeout.total_seconds()
        for other in call.others():
            if not names_all:
                call.receive(other)
                continue
            try:
                call.receive(other, seconds=max(deadline - time.monotonic(), 0))
            except DistNetworkError:
                missing.append(self.members[other])
        if missing:
            ranks = ", ".join(map(str, missing))
            raise DistNetworkError(
                f"{call.function}: expected rank {ranks} to come within "
                f"{self.timeout.total_seconds():g} s, got nothing"
            )
        between()
        for other in call.others():
            call.send(other, b"", step=1)

    def close(self) -> None:
        """End the group's thread."""
        if self._tasks is not None:
            self._tasks.put(None)

    # ---- messages of send() and recv(), numbered for each pair of processes and tag ----

    def send(self, to: int, tag: int, data: memoryview) -> None:
        """Send to a member."""
        peer = self.members[to]
        key = Key(peer, self._channel, tag, next(self._sent[peer, tag]))
        self._mesh.send(key, KINDS.index("send"), data, "send")

    def announce(self, source: int, tag: int) -> Key:
        """The key of the next message of a member that nobody has announced."""
        peer = self.members[source]
        with self._taking:
            number = self._taken[peer, tag]
            self._taken[peer, tag] += 1
        return Key(peer, self._channel, tag, number)

    def take(self, key: Key, function: str, into: Tensor) -> None:
        """Receive an announced message into a tensor."""
        _, (_, content) = self._mesh.receive((key,), self.timeout.total_seconds(), function)
        write(function, key.source, into, content)

    def take_any(self, tag: int, function: str, into: Tensor) -> int:
        """Receive the first message of any other member; returns its rank in the whole."""
        with self._taking:
            others = [peer for peer in self.members if peer != self._mesh.rank]
            keys = tuple(Key(p, self._channel, tag, self._taken[p, tag]) for p in others)
            seconds = self.timeout.total_seconds()
            key, (_, content) = self._mesh.receive(keys, seconds, function)
            self._taken[key.source, tag] += 1
        write(function, key.source, into, content)
        return key.source

    def await_message(self, key: Key, function: str, timeout: timedelta) -> None:
        """Wait until an announced message is there, and leave it there. DistNetworkError if its
        sender is gone, or it does not come in time."""
        self._mesh.wait((key,), timeout.total_seconds(), function)

    def has(self, key: Key) -> bool:
        """Whether an announced message is there."""
        return self._mesh.has(key)


class Call:
    """One call of a collective function: messages between the members, in steps."""

    def __init__(self, group: ProcessGroup, function: str, number: int) -> None:
        self.group = group
        self.function = function
        self._number = number

    def send(self, to: int, data: Any, step: int = 0) -> None:
        """Send a contiguous tensor, or bytes, to a member."""
        group = self.group
        kind = KINDS.index(self.function)
        content = bytes_of(data) if isinstance(data, Tensor) else data
        key = Key(group.members[to], group._channel, -1 - step, self._number)
        group._mesh.send(key, kind, content, self.function)

    def receive(self, source: int, step: int = 0, seconds: Optional[float] = None) -> bytearray:
        """The content that a member sent. DistBackendError if it called another function."""
        group = self.group
        key = Key(group.members[source], group._channel, -1 - step, self._number)
        if seconds is None:
            seconds = group.timeout.total_seconds()
        _, (kind, content) = group._mesh.receive((key,), seconds, self.function)
        if KINDS[kind] != self.function:
            raise DistBackendError(
                f"{self.function}: expected rank {key.source} to call it too, "
                f"got its call of {KINDS[kind]}"
            )
        return content

    def receive_into(self, source: int, tensor: Tensor, step: int = 0) -> None:
        """Write what a member sent to a tensor of the same dtype and number of elements."""
        rank = self.group.members[source]
        write(self.function, rank, tensor, self.receive(source, step))

    def others(self) -> List[int]:
        """All members but this process, those after it first, so that not all turn to the same."""
        size, me = self.group.size(), self.group.rank()
        return [(me + i) % size for i in range(1, size)]


def write(function: str, rank: int, tensor: Tensor, content: bytearray) -> None:
    """Copy bytes of elements into a tensor. DistBackendError if there are more or fewer."""
    expected = tensor.numel() * tensor.element_size()
    if len(content) != expected:
        raise DistBackendError(
            f"{function}: expected {expected} bytes from rank {rank}, got {len(content)}: "
            "the tensors of the processes differ in shape or dtype"
        )
    if expected:
        with no_grad():
            read = _C.frombuffer(content, dtype=tensor.dtype)
            tensor.detach().copy_(read.reshape(tensor.shape))


def _do_all(tasks: queue.SimpleQueue) -> None:
    while (item := tasks.get()) is not None:
        work, task = item
        work.run(task)


__all__ = ["Call", "ProcessGroup", "bytes_of", "write"]
