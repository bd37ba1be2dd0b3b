"""Times of calls that take turns, so that the noise of a machine meets each of them alike.

medians({"ours": f, "theirs": g}, rounds=9)       # seconds: {"ours": 1.2e-05, "theirs": ...}
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import random
import statistics
import time
from typing import Any, Callable, Mapping, Optional


def medians(
    calls: Mapping[str, Callable[[], Any]],
    rounds: int,
    repeats: Optional[int] = None,
    least: float = 5e-3,
    clock: Callable[[], float] = time.perf_counter,
    around: Callable[[str], Any] = contextlib.nullcontext,
) -> dict[str, float]:
    """The median seconds of each call, over `rounds` turns in another order each time.

    A turn calls a function once, then `repeats` times with the clock running; without `repeats`, as
    often as take `least` seconds. `around` gives the context in which the call of a name runs.
    """
    counts = {}
    for name, call in calls.items():
        with around(name):
            call()
            start = clock()
            call()
            counts[name] = repeats or max(1, int(least / max(clock() - start, 1e-9)))
    draw = random.Random(0)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        # Each finds in the caches what the one before left there, so each comes behind each.
        for name in draw.sample(list(calls), len(calls)):
            call = calls[name]
            with around(name):
                call()
                start = clock()
                for _ in range(counts[name]):
                    call()
                times[name].append((clock() - start) / counts[name])
    return {name: statistics.median(seconds) for name, seconds in times.items()}
