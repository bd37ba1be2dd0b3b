"""Timing for the programs in this folder: a call with fusion and without, in turns."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, Optional

import treadle

ROUNDS = 7


def computed(result: Any) -> None:
    """Looks at a result, a tensor or several, so that it is computed now."""
    for part in result if isinstance(result, (tuple, list)) else (result,):
        part.reshape(-1)[0].item()


def bits_agree(program: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a program has the same results with fusion and without."""
    with treadle.fuse(enabled=False):
        plain = program(*arguments)
    with treadle.fuse():
        fused = program(*arguments)
    if isinstance(plain, treadle.Tensor):
        plain, fused = (plain,), (fused,)
    return all(treadle.equal(a, b) for a, b in zip(plain, fused))


def print_times(
    program: Callable[..., Any], *arguments: Any, own: Optional[Callable[..., Any]] = None
) -> None:
    """Prints the milliseconds of a call: medians of rounds in turns. `own` is the library's own
    operator for the same, if it has one."""
    ways: dict[str, Callable[..., Any]] = {"without fusion": program, "with fusion": program}
    if own is not None:
        ways["the library's own"] = own
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, call in ways.items():
            with treadle.fuse(enabled=name == "with fusion"):
                computed(call(*arguments))
                began = time.perf_counter()
                computed(call(*arguments))
            times[name].append((time.perf_counter() - began) * 1e3)
    for name, taken in times.items():
        print(f"{name:18} {statistics.median(taken):8.2f} ms")
