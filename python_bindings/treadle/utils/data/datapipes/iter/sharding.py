"""ShardingFilter: the part of the samples that one worker has."""

from __future__ import annotations

from typing import Any, Iterator, Optional

from treadle.utils.data.worker_info import get_worker_info

from ..datapipe import IterDataPipe, functional_datapipe


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every n-th sample in each of the n workers of a DataLoader, all samples elsewhere;
    apply_sharding() says it otherwise."""

    def __init__(self, source_datapipe: IterDataPipe, sharding_group_filter: Any = None) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self._part: Optional[tuple] = None

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: Any = None
    ) -> None:
        """Take the samples instance_id, instance_id + num_of_instances, and so on. Raises
        ValueError for an instance_id that is not below the number."""
        if not 0 <= instance_id < num_of_instances:
            raise ValueError(
                f"apply_sharding: expected 0 <= instance_id < {num_of_instances}, got {instance_id}"
            )
        self._part = num_of_instances, instance_id

    def _own_part(self) -> tuple:
        if self._part is not None:
            return self._part
        worker = get_worker_info()
        return (1, 0) if worker is None else (worker.num_workers, worker.id)

    def __iter__(self) -> Iterator[Any]:
        count, own = self._own_part()
        for i, sample in enumerate(self.source_datapipe):
            if i % count == own:
                yield sample

    def __len__(self) -> int:
        count, own = self._own_part()
        whole, rest = divmod(len(self.source_datapipe), count)  # type: ignore[arg-type]
        return whole + (own < rest)


__all__ = ["ShardingFilterIterDataPipe"]
