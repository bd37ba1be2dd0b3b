"""Settings of all pipes that a pipe takes its samples from: orders, seeds, parts."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Dict, List, Optional

from treadle import _C
from treadle.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from treadle.utils.data.graph import traverse_dps


def get_all_graph_pipes(graph: Dict[int, tuple]) -> List[Any]:
    """All pipes of a graph, each once."""
    found: Dict[int, Any] = {}

    def collect(part: Dict[int, tuple]) -> None:
        for number, (pipe, sources) in part.items():
            if number not in found:
                found[number] = pipe
                collect(sources)

    collect(graph)
    return list(found.values())


def _with_method(datapipe: Any, name: str) -> List[Any]:
    return [p for p in get_all_graph_pipes(traverse_dps(datapipe)) if hasattr(type(p), name)]


def apply_sharding(
    datapipe: Any,
    num_of_instances: int,
    instance_id: int,
    sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT,
) -> Any:
    """Give each pipe that has apply_sharding() its part; returns the pipe."""
    for pipe in _with_method(datapipe, "apply_sharding"):
        pipe.apply_sharding(num_of_instances, instance_id, sharding_group)
    return datapipe


def apply_shuffle_settings(datapipe: Any, shuffle: Optional[bool] = None) -> Any:
    """Turn all shuffling on or off, None for neither; returns the pipe. Where it is turned on and
    no pipe shuffles, the result is one that does."""
    if shuffle is None:
        return datapipe
    pipes = [p for p in _with_method(datapipe, "set_shuffle") if hasattr(type(p), "set_seed")]
    if shuffle and not pipes:
        datapipe = datapipe.shuffle()
        pipes = [datapipe]
    for pipe in pipes:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Optional[_C.Generator] = None) -> Any:
    """Give each pipe that draws a seed for its next pass; returns the pipe. Workers that go through
    copies of it then have the same orders."""
    for pipe in _with_method(datapipe, "set_seed"):
        seed = _C.empty((), dtype=_C.int64).random_(generator=rng)
        pipe.set_seed(int(seed.item()))
    return datapipe


# The older name.
apply_shuffle_seed = apply_random_seed

__all__ = [
    "apply_random_seed", "apply_sharding", "apply_shuffle_seed", "apply_shuffle_settings",
    "get_all_graph_pipes",
]  # fmt: skip
