"""The pipes that a pipe takes its samples from."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional, Set

from treadle.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

_PIPES = (IterDataPipe, MapDataPipe)


def _pipes_in(value: Any) -> Iterator[Any]:
    """The nearest pipes among some values."""
    if isinstance(value, _PIPES):
        yield value
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from _pipes_in(item)
    elif isinstance(value, dict):
        yield from _pipes_in(list(value.values()))
    elif hasattr(value, "main_datapipe"):
        # The children of a fork have it in common.
        yield from _pipes_in(value.main_datapipe)


def traverse_dps(datapipe: Any, _seen: Optional[Set[int]] = None) -> Dict[int, tuple]:
    """The graph of a pipe: {id: (pipe, the graph of those it takes samples from)}."""
    seen = set() if _seen is None else _seen
    if id(datapipe) in seen:
        return {}
    seen = seen | {id(datapipe)}
    sources: Dict[int, tuple] = {}
    for value in list(vars(datapipe).values()):
        for source in _pipes_in(value):
            sources.update(traverse_dps(source, seen))
    return {id(datapipe): (datapipe, sources)}


def traverse(datapipe: Any, only_datapipe: Optional[bool] = None) -> Dict[int, tuple]:
    """The older name of traverse_dps()."""
    return traverse_dps(datapipe)


__all__ = ["traverse", "traverse_dps"]
