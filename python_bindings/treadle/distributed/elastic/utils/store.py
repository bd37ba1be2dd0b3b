"""Exchanges of agents and workers over a store."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Iterator, List

from treadle.distributed.store import Store


@contextlib.contextmanager
def store_timeout(store: Store, timeout: float) -> Iterator[None]:
    """While the context lasts, the store waits for so many seconds."""
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    try:
        yield
    finally:
        store.set_timeout(before)


def get_all(store: Store, rank: int, prefix: str, world_size: int) -> List[bytes]:
    """The values `{prefix}{rank}` of all, in their order, when all have set them; and all have read
    them when the process of rank 0, which may hold the store, goes on."""
    found = store.multi_get([f"{prefix}{each}" for each in range(world_size)])
    if store.add(f"{prefix}read", 1) == world_size:
        store.set(f"{prefix}all_read", "1")
    if rank == 0:
        store.wait([f"{prefix}all_read"])
    return found


def synchronize(
    store: Store, data: bytes, rank: int, world_size: int, key_prefix: str, timeout: float = 300
) -> List[bytes]:
    """The data of all, in the order of ranks. DistStoreError if that takes longer than `timeout`
    seconds."""
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


__all__ = ["get_all", "store_timeout", "synchronize"]
