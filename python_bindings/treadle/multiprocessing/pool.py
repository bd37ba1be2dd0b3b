"""A pool of processes whose tasks and results may hold tensors, which go through shared memory.

Example:

    with Pool(4) as pool:
        features = pool.map(extract, batches)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
from multiprocessing import pool
from typing import Any, Callable, Iterable, Optional

from treadle.multiprocessing.contexts import get_context


def clean_worker(*args: Any, **kwargs: Any) -> None:
    """A worker of a pool of the standard library, which frees its memory before it ends. The
    arguments are the worker's."""
    pool.worker(*args, **kwargs)  # type: ignore[attr-defined]
    gc.collect()


class Pool(pool.Pool):
    """multiprocessing.pool.Pool, with a context that shares tensors unless one is given."""

    def __init__(
        self,
        processes: Optional[int] = None,
        initializer: Optional[Callable] = None,
        initargs: Iterable = (),
        maxtasksperchild: Optional[int] = None,
        context: Any = None,
    ) -> None:
        super().__init__(
            processes, initializer, initargs, maxtasksperchild, context or get_context()
        )
