"""The last calls of each group of this process: for those who look for the cause of a failure.

    flight_record.dump("/tmp/record_0.json")

Where TORCH_FR_DUMP_TEMP_FILE is set, a call that fails writes the record to the file of that name
with the rank at its end. TORCH_FR_BUFFER_SIZE is how many calls of a group it has, at most 1024.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Optional

from treadle.distributed._engine_group import _DTYPES, EngineGroup
from treadle.distributed._world import _world, get_rank

_MOST = 1024


def _size() -> int:
    text = os.environ.get("TORCH_FR_BUFFER_SIZE") or os.environ.get("TORCH_NCCL_TRACE_BUFFER_SIZE")
    try:
        return _MOST if text is None else min(max(int(text), 0), _MOST)
    except ValueError:
        raise ValueError(f"TORCH_FR_BUFFER_SIZE: expected a number, got {text!r}") from None


def calls_of(group: Any) -> List[Dict[str, Any]]:
    """The last calls of a group, the oldest first, with the numbers that its engine gives them."""
    size = _size()
    found: List[Dict[str, Any]] = []
    for backend in group._each_backend():
        if isinstance(backend, EngineGroup):
            found += backend.group.record()
    return found[-size:] if size else []


def record() -> Dict[str, Any]:
    """The last calls of each group. A call has `number` (messages are numbered apart), `name`,
    `dtype`, `shape`, `root`, `state` (scheduled, started, completed or failed), and when it was
    `queued`, `started` and `ended`, in seconds since 1970; 0 for what has not happened."""
    groups = []
    for group in _world.groups:
        calls = calls_of(group)
        for call in calls:
            number = call["dtype"]
            call["dtype"] = _DTYPES[number] if number < len(_DTYPES) else number
        groups.append({"name": group.group_name, "ranks": list(group.members), "calls": calls})
    return {"version": 1, "rank": get_rank() if _world.groups else -1, "groups": groups}


def dump(path: Optional[str] = None) -> str:
    """The record as JSON; written to `path` as well, if it is given."""
    text = json.dumps(record())
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return text


def _dump_after_failure() -> None:
    start = os.environ.get("TORCH_FR_DUMP_TEMP_FILE")
    if start and _world.default is not None:
        dump(f"{start}{get_rank()}")


__all__ = ["dump", "record"]
