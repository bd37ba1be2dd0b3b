"""The last calls of this process in all groups, as their engines have recorded them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List

from treadle.distributed import _world


def calls() -> List[Dict[str, Any]]:
    """A dictionary for each call, those of a group in their order: name, backend, group (its name),
    number, dtype (a name), itemsize, shape, is_message, state, and queued, started and ended in
    seconds since 1970, 0 where it has not come to that."""
    from treadle.distributed._engine_group import _NUMBERS

    dtypes = {number: dtype for dtype, number in _NUMBERS.items()}
    found: List[Dict[str, Any]] = []
    for group in _world._world.groups:
        for backend in group.__dict__.get("_backends", {}).values():
            engine = getattr(backend, "group", None)
            for entry in engine.record() if engine is not None else ():
                dtype = dtypes[entry["dtype"]]
                found.append(
                    {
                        **entry,
                        "backend": backend.name(),
                        "group": group.group_name,
                        "dtype": str(dtype).rpartition(".")[2],
                        "itemsize": dtype.itemsize,
                    }
                )
    return found
