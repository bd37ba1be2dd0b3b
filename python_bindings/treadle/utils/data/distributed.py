"""A sampler that gives each process of a group its share of a dataset."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
from typing import Any, Iterator, Optional, Sequence

from treadle import _C

from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index from the `rank`-th one on; call set_epoch() before each epoch,
    so that each has another order, the same one in all processes.

    All shares have one length: where the dataset does not divide, indices from its beginning are
    given again, or with `drop_last` those at the end left out. Replicas and rank are those of
    treadle.distributed if they are not given. ValueError for a rank outside [0, num_replicas).
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: Optional[int] = None,
        rank: Optional[int] = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        from treadle import distributed

        if num_replicas is None:
            num_replicas = distributed.get_world_size()
        if rank is None:
            rank = distributed.get_rank()
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"DistributedSampler: expected rank in [0, {num_replicas}), got rank = {rank}"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        shares = len(dataset) / num_replicas
        self.num_samples = math.floor(shares) if drop_last else math.ceil(shares)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        count = len(self.dataset)
        order: Sequence[int] = range(count)
        if self.shuffle:
            generator = _C.Generator().manual_seed(self.seed + self.epoch)
            order = _C.randperm(count, generator=generator).tolist()
        places = range(self.rank, self.total_size if count else 0, self.num_replicas)
        # From the beginning again where shares are not equal.
        return (order[place % count] for place in places)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next epoch."""
        self.epoch = epoch
