"""Hands out calls to workers, and collects what they find and what they die of."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from typing import Callable, Iterator, Optional, Sequence

from . import seeds
from .draw import draw
from .judge import Finding
from .process import HANG, Died, Worker
from .recipe import Recipe
from .shrink import finding_of

CHUNK = 500
# After so many chunks of its own a worker starts anew.
RENEWED = 100


@dataclass
class Found:
    """A finding, the call it was first seen in, and in how many."""

    number: int
    recipe: Recipe
    finding: Finding
    count: int = 1


@dataclass
class Run:
    """The work to do, and its results."""

    seed: int
    calls: int
    only: Optional[str] = None
    workers: int = 2
    seconds: Optional[float] = None
    modules: Sequence[str] = ()
    hang: float = HANG
    first: int = 0
    report: Callable[[Found], None] = lambda found: None

    def __post_init__(self) -> None:
        self.done = 0
        self.found: dict[tuple[str, str, str], Found] = {}
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._chunks = self._hand_out()
        self.failure: Optional[BaseException] = None

    def _hand_out(self) -> Iterator[tuple[int, int]]:
        end = self.first + self.calls
        for first in range(self.first, end, CHUNK):
            if self.seconds is not None and time.monotonic() - self._started > self.seconds:
                return
            yield first, min(CHUNK, end - first)

    def run(self, progress: Callable[[Run], None]) -> None:
        """Makes all calls; `progress` is called now and then."""
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(self.workers)]
        for thread in threads:
            thread.start()
        while any(t.is_alive() for t in threads):
            for thread in threads:
                thread.join(0.25)
            progress(self)
        if self.failure is not None:
            raise self.failure

    def _work(self) -> None:
        worker, chunks = Worker(self.modules, self.hang), 0
        try:
            while True:
                with self._lock:
                    chunk = next(self._chunks, None)
                if chunk is None or self.failure is not None:
                    return
                chunks += 1
                if chunks % RENEWED == 0:
                    worker.close()  # what its caches hold counts against its limit of memory
                self._make_calls(worker, *chunk)
        except BaseException as error:
            self.failure = error
        finally:
            worker.close()

    def _make_calls(self, worker: Worker, first: int, count: int) -> None:
        end = first + count
        while first < end:
            try:
                worker.order("run", self.seed, first, end - first, self.only)
                while (answer := worker.answer())[0] != "done":
                    self._add(answer[1], answer[2])
                made, first = end - first, end
            except Died as died:
                if died.number < 0:
                    raise RuntimeError(
                        f"a worker {died.how} between calls:\n{died.output[-2000:]}"
                    ) from None
                if (
                    finding := finding_of(died, draw(self.seed, died.number, self.only))
                ) is not None:
                    self._add(died.number, finding)
                made, first = died.number + 1 - first, died.number + 1
            with self._lock:
                self.done += made

    def _add(self, number: int, finding: Finding) -> None:
        recipe = draw(self.seed, number, self.only)
        key = (recipe.operator.name, finding.kind, _alike(finding.detail))
        with self._lock:
            if key in self.found:
                self.found[key].count += 1
            else:
                self.found[key] = Found(number, recipe, finding)
                self.report(self.found[key])

    def operators(self) -> int:
        """How many operators were called."""
        return min(len(seeds.targets(self.only)), self.done)


def _alike(detail: str) -> str:
    """The common part of findings that are the same: the text without its numbers."""
    return re.sub(r"-?\d[\d.e+-]*|\binf\b|\bnan\b|\bu?int\d*\b|\b\w*float\d*\b", "#", detail)[:40]
