"""CommDebugMode: the collective functions that tensors which are spread call, counted."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import collections
from typing import Any, Dict

from treadle.distributed.tensor import _collective_utils


class CommDebugMode:
    """A block in which the collective functions of DTensors are counted, of forward and backward.

        with CommDebugMode() as comm:
            model(x).sum().backward()
        comm.get_comm_counts()      # {"all_reduce": 2}

    The names are those of the functions of treadle.distributed: all_reduce, all_gather_into_tensor,
    reduce_scatter_tensor, all_to_all_single, broadcast, scatter.
    """

    def __init__(self) -> None:
        self.comm_counts: Dict[str, int] = collections.Counter()

    def _count(self, name: str) -> None:
        self.comm_counts[name] += 1

    def __enter__(self) -> CommDebugMode:
        self.comm_counts = collections.Counter()
        _collective_utils.observers.functions.append(self._count)
        return self

    def __exit__(self, *exc: Any) -> None:
        _collective_utils.observers.functions.remove(self._count)

    def get_total_counts(self) -> int:
        """How many calls there were."""
        return sum(self.comm_counts.values())

    def get_comm_counts(self) -> Dict[str, int]:
        """How many calls of each function there were; 0 for others."""
        return self.comm_counts


__all__ = ["CommDebugMode"]
