"""Types that programs write for TorchScript: `BroadcastingList2[int]` is an int or two of them."""

from __future__ import annotations

from typing import Any, Dict, List, Union


class _BroadcastingList:
    """A list of a fixed length, or one value in place of equal ones."""

    def __getitem__(self, kind: Any) -> Any:
        return Union[kind, List[kind]]


BroadcastingList1 = _BroadcastingList()
BroadcastingList2 = _BroadcastingList()
BroadcastingList3 = _BroadcastingList()

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List"]
