"""Pipes that join others, and take one apart: Concater, Zipper, Multiplexer, Forker,
Demultiplexer."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
from collections import deque
from typing import Any, Callable, Deque, Iterator, List, Optional, Tuple

from ..datapipe import IterDataPipe, functional_datapipe


def _pipes(name: str, datapipes: Tuple[Any, ...]) -> Tuple[Any, ...]:
    if not datapipes:
        raise ValueError(f"{name}: expected pipes, got none")
    for pipe in datapipes:
        if not isinstance(pipe, IterDataPipe):
            raise TypeError(f"{name}: expected pipes, got {type(pipe).__name__}")
    return datapipes


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """The samples of all pipes, one pipe after the other."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        self.datapipes = _pipes("concat", datapipes)

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of one sample of each pipe, until the shortest ends."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        self.datapipes = _pipes("zip", datapipes)

    def __iter__(self) -> Iterator[Tuple[Any, ...]]:
        yield from zip(*self.datapipes)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """One sample of each pipe in turn, until the shortest ends."""

    def __init__(self, *datapipes: IterDataPipe) -> None:
        self.datapipes = _pipes("mux", datapipes)

    def __iter__(self) -> Iterator[Any]:
        for samples in zip(*self.datapipes):
            yield from samples

    def __len__(self) -> int:
        return min(map(len, self.datapipes)) * len(self.datapipes)


class _Shared:
    """One pass over a pipe for several children: what one has read and another has not waits."""

    def __init__(self, datapipe: IterDataPipe, count: int, buffer_size: int) -> None:
        self.main_datapipe = datapipe
        self.num_instances = count
        self.buffer_size = buffer_size
        self.number = 0
        self.begun: set = set()
        self._clear()

    def _clear(self) -> None:
        self.source: Optional[Iterator[Any]] = None
        self.waiting: List[Deque[Any]] = [deque() for _ in range(self.num_instances)]

    def begin(self, child: int) -> int:
        """The number of the pass that a child is in: a new one where it was in the last."""
        if child in self.begun or self.number == 0:
            self.number += 1
            self.begun = set()
            self._clear()
        self.begun.add(child)
        return self.number

    def next(self, child: int) -> Any:
        """The next sample of a child; StopIteration at the end."""
        while not self.waiting[child]:
            if self.source is None:
                self.source = iter(self.main_datapipe)
            self._hand_out(next(self.source))
        return self.waiting[child].popleft()

    def _hand_out(self, sample: Any) -> None:
        raise NotImplementedError

    def _wait(self, child: int, sample: Any, count: int) -> None:
        if 0 <= self.buffer_size < count:
            raise BufferError(
                f"{self.title}: expected at most {self.buffer_size} samples to wait for a child, "
                f"got {count}; see buffer_size"
            )
        self.waiting[child].append(sample)

    title = ""

    def __getstate__(self) -> dict:
        state = {**self.__dict__, "source": None, "number": 0, "begun": set()}
        return {**state, "waiting": [deque() for _ in range(self.num_instances)]}


class _Fork(_Shared):
    title = "fork"

    def __init__(self, datapipe: Any, count: int, buffer_size: int, copy_as: Optional[str]) -> None:
        super().__init__(datapipe, count, buffer_size)
        self.copy_as = copy_as

    def _hand_out(self, sample: Any) -> None:
        copies = {"shallow": copy.copy, "deep": copy.deepcopy}
        one = copies.get(self.copy_as or "", lambda x: x)
        for child, waiting in enumerate(self.waiting):
            # The child that asked has none, and takes this one at once.
            self._wait(child, one(sample), len(waiting))


class _Demux(_Shared):
    title = "demux"

    def __init__(
        self, datapipe: Any, count: int, buffer_size: int, classify: Callable, drop_none: bool
    ) -> None:
        super().__init__(datapipe, count, buffer_size)
        self.classifier_fn, self.drop_none = classify, drop_none

    def next(self, child: int) -> Any:
        self.asking = child
        return super().next(child)

    def _hand_out(self, sample: Any) -> None:
        child = self.classifier_fn(sample)
        if child is None and self.drop_none:
            return
        if child is None or not 0 <= child < self.num_instances:
            raise ValueError(
                f"demux: expected classifier_fn to return a number below {self.num_instances}"
                f"{' or None' if self.drop_none else ''}, got {child}"
            )
        total = sum(map(len, self.waiting)) + (child != self.asking)
        self._wait(child, sample, total)


class _ChildDataPipe(IterDataPipe):
    """One of the pipes that fork() and demux() return. A second pass over it begins a new one for
    all, and iterators of its siblings are invalid then."""

    def __init__(self, main_datapipe: _Shared, instance_id: int) -> None:
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def __iter__(self) -> Iterator[Any]:
        shared = self.main_datapipe
        number = shared.begin(self.instance_id)
        while True:
            if shared.number != number:
                raise RuntimeError(
                    f"{shared.title}: expected an iterator of the pass that was begun last, got "
                    "one of an earlier pass"
                )
            try:
                sample = shared.next(self.instance_id)
            except StopIteration:
                return
            yield sample

    def __len__(self) -> int:
        if isinstance(self.main_datapipe, _Demux):
            raise TypeError("demux: expected a pipe with a length, got one of parts")
        return len(self.main_datapipe.main_datapipe)


def _children(name: str, num_instances: int, shared: Callable[[], _Shared]) -> List[_ChildDataPipe]:
    if num_instances < 1:
        raise ValueError(f"{name}: expected num_instances >= 1, got {num_instances}")
    common = shared()
    return [_ChildDataPipe(common, i) for i in range(num_instances)]


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """num_instances pipes with the samples of one, each of which is gone through by itself.

    buffer_size: how many samples may wait for the slowest, -1 for any number; BufferError for more.
    copy: "shallow" or "deep", how each pipe is given a copy of its own. Returns a list.
    """

    def __new__(
        cls,
        datapipe: IterDataPipe,
        num_instances: int,
        buffer_size: int = 1000,
        copy: Optional[str] = None,
    ) -> Any:
        if copy not in (None, "shallow", "deep"):
            raise ValueError(f"fork: expected copy to be None, 'shallow' or 'deep', got {copy!r}")
        if num_instances == 1 and copy is None:
            return [datapipe]
        return _children(
            "fork", num_instances, lambda: _Fork(datapipe, num_instances, buffer_size, copy)
        )


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """num_instances pipes: each sample is in the one whose number classifier_fn returns, or in none
    for None, where drop_none says so. buffer_size as for fork(), over all. Returns a list."""

    def __new__(
        cls,
        datapipe: IterDataPipe,
        num_instances: int,
        classifier_fn: Callable[[Any], Optional[int]],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        return _children(
            "demux",
            num_instances,
            lambda: _Demux(datapipe, num_instances, buffer_size, classifier_fn, drop_none),
        )


__all__ = [
    "ConcaterIterDataPipe", "DemultiplexerIterDataPipe", "ForkerIterDataPipe",
    "MultiplexerIterDataPipe", "ZipperIterDataPipe",
]  # fmt: skip
