"""The processes of a mesh as threads of one process: what DTensors send is exchanged in memory.

    results = on_mesh(3, lambda mesh: distribute_tensor(x, mesh, [Shard(0)]).sum().full_tensor())

Each thread runs the function, as each process of a program does. The threads are many times faster
than processes, because they exchange no messages.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import math
import threading
from typing import Any, Callable, Dict, List, Optional

import treadle
from treadle.distributed.device_mesh import DeviceMesh
from treadle.distributed import ReduceOp
from treadle.distributed.tensor import _collective_utils


STEPS = {
    ReduceOp.SUM: treadle.add,
    ReduceOp.AVG: treadle.add,
    ReduceOp.PRODUCT: treadle.mul,
    ReduceOp.MIN: treadle.minimum,
    ReduceOp.MAX: treadle.maximum,
}


def reduced(op: Any, values: List[Any]) -> Any:
    """One tensor from those of all, in their order."""
    result = functools.reduce(STEPS[op], values)
    return result / len(values) if op == ReduceOp.AVG else result


class Group:
    """The threads that exchange values; `place` is that of one of them."""

    def __init__(self, place: int, barrier: threading.Barrier, slots: List[Any]) -> None:
        self.place, self._barrier, self._slots = place, barrier, slots

    def swap(self, name: str, value: Any) -> List[Any]:
        """The values of all threads, which have to call the same function."""
        self._slots[self.place] = (name, value)
        self._barrier.wait(20)
        found = list(self._slots)
        self._barrier.wait(20)
        assert {each for each, _ in found} == {name}, f"the threads call {found}"
        return [each for _, each in found]


class Exchange:
    """The functions of treadle.distributed that DTensors call."""

    @staticmethod
    def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> None:
        result = reduced(op, group.swap("all_reduce", tensor.clone()))
        tensor.copy_(result)

    @staticmethod
    def all_gather_into_tensor(into: Any, tensor: Any, group: Any = None) -> None:
        into.copy_(treadle.cat(group.swap("all_gather", tensor.clone())))

    @staticmethod
    def reduce_scatter_tensor(into: Any, tensor: Any, op: Any, group: Any = None) -> None:
        parts = [each.chunk(group._barrier.parties) for each in group.swap("scatter", tensor)]
        into.copy_(reduced(op, [part[group.place] for part in parts]))

    @staticmethod
    def all_to_all_single(
        into: Any, tensor: Any, counts: List[int], sent: List[int], group: Any = None
    ) -> None:
        found = [each[group.place] for each in group.swap("exchange", tensor.split(sent))]
        assert [each.numel() for each in found] == counts
        into.copy_(treadle.cat(found))

    @staticmethod
    def broadcast(tensor: Any, group: Any = None, group_src: int = 0) -> None:
        tensor.copy_(group.swap("broadcast", tensor.clone())[group_src])

    @staticmethod
    def scatter(tensor: Any, parts: Optional[List[Any]], group: Any, group_src: int) -> None:
        tensor.copy_(group.swap("scatter", parts)[group_src][group.place])

    @staticmethod
    def all_gather_object(found: List[Any], value: Any, group: Any = None) -> None:
        found[:] = group.swap("object", value)


def on_mesh(shape: Any, function: Callable[[DeviceMesh], Any]) -> List[Any]:
    """What the function returns in each of the threads, called with the mesh of all: of one
    dimension, or of a shape."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    ranks = treadle.arange(math.prod(shape)).reshape(shape)
    bare = DeviceMesh("cpu", ranks, _init_backend=False, _rank=0)
    groups: Dict[Any, Any] = {}
    for dim in range(len(shape)):
        for row in bare._rows(dim):
            barrier, slots = threading.Barrier(len(row)), [None] * len(row)
            for place, rank in enumerate(row):
                groups[dim, rank] = Group(place, barrier, slots)
    results: List[Any] = [None] * ranks.numel()
    errors: List[BaseException] = []

    def run(rank: int) -> None:
        mesh = DeviceMesh("cpu", ranks, _init_backend=False, _rank=rank)
        mesh._dim_groups = [groups[dim, rank] for dim in range(len(shape))]
        try:
            results[rank] = function(mesh)
        except BaseException as error:
            errors.append(error)
            for group in groups.values():
                group._barrier.abort()

    was = _collective_utils.dist
    _collective_utils.dist = Exchange  # type: ignore[assignment,misc]
    try:
        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(len(results))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        _collective_utils.dist = was
    # A thread that fails breaks the barriers of the others.
    causes = [e for e in errors if not isinstance(e, threading.BrokenBarrierError)]
    if errors:
        raise (causes or errors)[0]
    return results
