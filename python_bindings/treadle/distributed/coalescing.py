"""Several calls as one: what is called within the block begins at its end.

with _coalescing_manager(async_ops=True) as several:
    for tensor in tensors:
        dist.all_reduce(tensor)
several.wait()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator, List, Optional, Tuple

from treadle.distributed.work import Work


class CoalescingManager:
    """The handles of the calls."""

    def __init__(self) -> None:
        self.works: List[Work] = []

    def append(self, work: Optional[Work] = None) -> None:
        """Add a handle."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for the end of all calls."""
        for work in self.works:
            work.wait()
        self.works.clear()


class Block(threading.local):
    """The calls that wait for the end of a block: a method of a group, tensors, options."""

    def __init__(self) -> None:
        self.calls: Optional[List[Tuple[str, Any, Any]]] = None
        self.group: Any = None


_block = Block()


def postponed(group: Any, method: str, tensors: Any, opts: Any) -> bool:
    """Whether the call begins at the end of a block of this group."""
    if _block.calls is None or _block.group is not group:
        return False
    _block.calls.append((method, tensors, opts))
    return True


def _begin(group: Any, calls: List[Tuple[str, Any, Any]]) -> List[Work]:
    """All calls; those of one kind that follow each other as one where a group has that."""
    together = {
        "allreduce": "allreduce_coalesced",
        "_allgather_base": "allgather_into_tensor_coalesced",
        "_reduce_scatter_base": "reduce_scatter_tensor_coalesced",
    }
    first, _, opts = calls[0]
    is_one_kind = all(
        method == first
        and each.reduceOp == opts.reduceOp
        and tensors[0].dtype == calls[0][1][0].dtype
        if hasattr(opts, "reduceOp")
        else method == first
        for method, tensors, each in calls
    )
    opts.asyncOp = True
    if is_one_kind and first in together:
        several: Callable[..., Work] = getattr(group, together[first])
        if first == "allreduce":
            return [several([t for _, tensors, _ in calls for t in tensors], opts)]
        outputs = [tensors[0] for _, tensors, _ in calls]
        return [several(outputs, [tensors[1] for _, tensors, _ in calls], opts)]
    works = []
    for method, tensors, each in calls:
        each.asyncOp = True
        args = (tensors,) if method == "allreduce" else tensors
        works.append(getattr(group, method)(*args, each))
    return works


@contextlib.contextmanager
def coalescing_manager(
    group: Any = None, device: Any = None, async_ops: bool = False
) -> Iterator[CoalescingManager]:
    """See the module. Calls of all_reduce(), all_gather_into_tensor() and reduce_scatter_tensor()
    begin at the end of the block; others within it begin at once. Without `async_ops` the block
    ends when they have ended."""
    from treadle.distributed._world import group_of

    found = group_of(group)
    if found is not None and device is not None:
        found._get_backend(device)
    if _block.calls is not None:
        raise RuntimeError("_coalescing_manager: expected no block within another, got one")
    manager = CoalescingManager()
    _block.calls, _block.group = [], found
    try:
        yield manager
        calls = _block.calls
    finally:
        _block.calls = _block.group = None
    if calls:
        manager.works.extend(_begin(found, calls))
    if not async_ops:
        manager.wait()


__all__ = ["CoalescingManager", "coalescing_manager", "postponed"]
