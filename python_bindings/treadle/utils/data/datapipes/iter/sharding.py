"""ShardingFilter: the part of the samples that one worker has."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import enum
from typing import Any, Dict, Iterator, Optional, Tuple

from treadle.utils.data.worker_info import get_worker_info

from ..datapipe import IterDataPipe, functional_datapipe


class SHARDING_PRIORITIES(enum.IntEnum):  # noqa: N801  PyTorch's name
    """The takers of parts, outermost first: processes, then workers in each; or one thing alone."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every n-th sample in each of the n workers of a DataLoader, all samples elsewhere;
    apply_sharding() says it otherwise. With sharding_group_filter only what takes parts by that
    name does."""

    def __init__(
        self,
        source_datapipe: IterDataPipe,
        sharding_group_filter: Optional[SHARDING_PRIORITIES] = None,
    ) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self._parts: Dict[SHARDING_PRIORITIES, Tuple[int, int]] = {}

    def apply_sharding(
        self,
        num_of_instances: int,
        instance_id: int,
        sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT,
    ) -> None:
        """Take the samples instance_id, instance_id + num_of_instances, and so on; a part of those
        that another group takes. Raises ValueError for an instance_id that is not below the number,
        RuntimeError for the default group beside others."""
        if not 0 <= instance_id < num_of_instances:
            raise ValueError(
                f"apply_sharding: expected 0 <= instance_id < {num_of_instances}, got {instance_id}"
            )
        default = SHARDING_PRIORITIES.DEFAULT
        if any((group == default) != (sharding_group == default) for group in self._parts):
            raise RuntimeError(
                "apply_sharding: expected the group DEFAULT alone or other groups, got "
                f"{sharding_group.name} after {next(iter(self._parts)).name}"
            )
        self._parts[sharding_group] = num_of_instances, instance_id

    def _own_part(self) -> Tuple[int, int]:
        parts = dict(self._parts)
        worker = get_worker_info()
        if worker is not None and SHARDING_PRIORITIES.DEFAULT not in parts:
            parts.setdefault(SHARDING_PRIORITIES.MULTIPROCESSING, (worker.num_workers, worker.id))
        count, own = 1, 0
        for group in sorted(parts):
            if self.sharding_group_filter in (None, group):
                number, instance = parts[group]
                count, own = count * number, own * number + instance
        return count, own

    def __iter__(self) -> Iterator[Any]:
        count, own = self._own_part()
        for i, sample in enumerate(self.source_datapipe):
            if i % count == own:
                yield sample

    def __len__(self) -> int:
        count, own = self._own_part()
        whole, rest = divmod(len(self.source_datapipe), count)
        return whole + (own < rest)


__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]
