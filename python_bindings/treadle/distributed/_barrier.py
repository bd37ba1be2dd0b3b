"""A barrier whose error names the processes that do not come: the first process hears from each of
the others, and answers."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import time
from datetime import timedelta
from typing import Any, List, Tuple

from treadle import _C
from treadle.distributed.errors import DistNetworkError

# Tags that programs do not use: theirs are not negative.
_FIRST_TAG = -2


def _come(work: Any, seconds: float) -> bool:
    try:
        work.wait(timedelta(seconds=max(seconds, 0.001)))
    except DistNetworkError:
        return False
    return True


def monitored_barrier(group: Any, timeout: timedelta, wait_all_ranks: bool) -> None:
    """See ProcessGroup.monitored_barrier()."""
    numbers = group.__dict__.setdefault("_monitored", itertools.count())
    tag = _FIRST_TAG - 2 * next(numbers)
    seconds, here = timeout.total_seconds(), _C.zeros(1, dtype=_C.uint8)
    end = time.monotonic() + seconds
    if group.rank() > 0:
        group.send([here], 0, tag)
        answer = group.recv([here], 0, tag - 1)
        if not _come(answer, seconds):
            _give_up(group, [(answer, here)])
            raise DistNetworkError(
                f"monitored_barrier: expected data from rank {group.members[0]} within "
                f"{seconds:g} s, got none"
            )
        return
    others = range(1, group.size())
    coming = {}
    for other in others:
        place = _C.zeros(1, dtype=_C.uint8)
        coming[other] = (group.recv([place], other, tag), place)
    missing: List[int] = []
    for other in others:
        if not _come(coming[other][0], end - time.monotonic()):
            missing.append(other)
            if not wait_all_ranks:
                break
    if missing:
        _give_up(group, [pair for pair in coming.values() if not pair[0].is_completed()])
        ranks = ", ".join(str(group.members[other]) for other in missing)
        raise DistNetworkError(
            f"monitored_barrier: expected rank {ranks} to come within {seconds:g} s, got nothing"
        )
    for other in others:
        group.send([here], other, tag - 1).wait()


def _give_up(group: Any, waiting: List[Tuple[Any, Any]]) -> None:
    """End the waits. A message may still come: its memory stays as long as the group."""
    group.__dict__.setdefault("_never_came", []).extend(waiting)
    for work, _ in waiting:
        handle = getattr(work, "_handle", None)
        if handle is not None:
            handle.cancel()


__all__ = ["monitored_barrier"]
