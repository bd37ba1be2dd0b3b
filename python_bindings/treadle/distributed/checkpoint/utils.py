"""Steps of a save or a load that all processes do together: an error in one is raised in all."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, TypeVar, cast

from treadle import distributed as dist
from treadle.distributed.checkpoint._transport import packed, unpacked
from treadle.distributed.checkpoint.api import (
    WRAPPED_EXCEPTION,
    CheckpointException,
    _is_wrapped_exception,
    _wrap_exception,
)

T = TypeVar("T")
R = TypeVar("R")


def _failures(results: List[Any]) -> Dict[int, WRAPPED_EXCEPTION]:
    return {rank: r for rank, r in enumerate(results) if _is_wrapped_exception(r)}


def _attempt(function: Callable[[], Any]) -> Any:
    """The result, or the wrapped exception."""
    try:
        return function()
    except BaseException as error:
        return _wrap_exception(error)


class _DistWrapper:
    """A group of processes; without `use_dist`, this process alone. Ranks are those in the
    group."""

    def __init__(
        self, group: Optional[dist.ProcessGroup], use_dist: bool, coordinator_rank: int
    ) -> None:
        self.group = group
        self.use_dist = use_dist
        self.coordinator_rank = coordinator_rank
        self.rank = dist.get_rank(group) if use_dist else 0
        self.is_coordinator = not use_dist or self.rank == coordinator_rank
        self.global_coordinator_rank = coordinator_rank if use_dist else 0
        if use_dist and group is not None:
            self.global_coordinator_rank = dist.get_global_rank(group, coordinator_rank)

    def get_rank(self) -> int:
        return self.rank

    def get_world_size(self) -> int:
        return dist.get_world_size(self.group) if self.use_dist else 1

    def broadcast_object(self, object: Optional[T]) -> T:
        if not self.use_dist:
            return cast(T, object)
        values = [packed(object) if self.is_coordinator else None]
        dist.broadcast_object_list(values, self.global_coordinator_rank, self.group)
        return unpacked(cast(bytes, values[0]))

    def gather_object(self, object: T) -> Optional[List[T]]:
        """The objects of all, in the coordinator; None in the others."""
        if not self.use_dist:
            return [object]
        found: Any = [None] * self.get_world_size() if self.is_coordinator else None
        dist.gather_object(packed(object), found, self.global_coordinator_rank, self.group)
        return None if found is None else list(map(unpacked, found))

    def all_gather_object(self, object: T) -> List[T]:
        if not self.use_dist:
            return [object]
        found: Any = [None] * self.get_world_size()
        dist.all_gather_object(found, packed(object), self.group)
        return list(map(unpacked, found))

    def scatter_object(self, object_list: Optional[List[T]]) -> T:
        if not self.use_dist:
            assert object_list is not None
            return object_list[0]
        found: Any = [None]
        given = list(map(packed, object_list or ())) if self.is_coordinator else None
        dist.scatter_object_list(found, given, self.global_coordinator_rank, self.group)
        return unpacked(found[0])

    def _reduced(self, step: str, local: Any, reduce_fun: Callable[[List[Any]], Any]) -> Any:
        """The result of `reduce_fun`, or the exception for all; None in all but the coordinator."""
        gathered = self.gather_object(local)
        if not self.is_coordinator:
            return None
        assert gathered is not None
        failures = _failures(gathered)
        if not failures:
            result = _attempt(lambda: reduce_fun(gathered))
            if not _is_wrapped_exception(result):
                return result
            failures = {self.rank: result}
        return CheckpointException(step, failures)

    def reduce_scatter(
        self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[List[T]], List[R]]
    ) -> R:
        """Call `map_fun` everywhere and `reduce_fun` with all results in the coordinator; this
        process's part of what it returns."""
        results = self._reduced(step, _attempt(map_fun), reduce_fun)
        if isinstance(results, CheckpointException):
            results = [results] * self.get_world_size()
        return _raised(self.scatter_object(results))

    def all_reduce(
        self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[List[T]], R]
    ) -> R:
        """Call `map_fun` everywhere and `reduce_fun` with all results in the coordinator; what it
        returns."""
        return _raised(self.broadcast_object(self._reduced(step, _attempt(map_fun), reduce_fun)))

    def all_gather(self, step: str, map_fun: Callable[[], T]) -> List[T]:
        """The results of `map_fun` in all processes."""
        results = self.all_gather_object(_attempt(map_fun))
        failures = _failures(results)
        if failures:
            raise CheckpointException(step, failures)
        return results

    def broadcast(self, step: str, map_fun: Callable[[], T]) -> T:
        """The result of `map_fun` in the coordinator, which alone calls it."""
        result: Any = None
        if self.is_coordinator:
            result = _attempt(map_fun)
            if _is_wrapped_exception(result):
                result = CheckpointException(step, {self.rank: result})
        return _raised(self.broadcast_object(result))

    def barrier(self) -> None:
        if self.use_dist:
            dist.barrier(group=self.group)


def _raised(result: Any) -> Any:
    if isinstance(result, CheckpointException):
        raise result
    return result


def _all_gather_keys(state_dict: Dict[str, Any], group: Optional[dist.ProcessGroup] = None) -> set:
    """The keys of all processes."""
    found: Any = [None] * dist.get_world_size(group)
    dist.all_gather_object(found, list(state_dict), group)
    return {key for keys in found for key in keys}


def _assert_same_keys(
    state_dict: Dict[str, Any], process_group: Optional[dist.ProcessGroup] = None
) -> None:
    """AssertionError where another process has keys that this one lacks. Every process calls it."""
    if dist.get_world_size(process_group) == 1:
        return
    missing = _all_gather_keys(state_dict, process_group) - set(state_dict)
    if missing:
        raise AssertionError(
            f"expected the keys of all processes, got none of {sorted(missing)} in this one"
        )


__all__: List[str] = []
