"""The facts that code running in a worker process can find out about it."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Optional


class WorkerInfo:
    """`id` counts from 0 to `num_workers` - 1; `seed` is this worker's own; `dataset` is its
    copy."""

    def __init__(self, id: int, num_workers: int, seed: int, dataset: Any) -> None:
        self.id = id
        self.num_workers = num_workers
        self.seed = seed
        self.dataset = dataset

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, num_workers={self.num_workers}, seed={self.seed})"


_current: Optional[WorkerInfo] = None


def get_worker_info() -> Optional[WorkerInfo]:
    """The worker that this code runs in, or None in the main process."""
    return _current


def set_worker_info(info: WorkerInfo) -> None:
    """Called once in each worker."""
    global _current
    _current = info
