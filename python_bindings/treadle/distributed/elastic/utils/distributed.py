"""Stores and ports for agents."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Optional

from treadle.distributed.elastic.utils.api import get_socket_with_port
from treadle.distributed.errors import DistNetworkError
from treadle.distributed.store import TCPStore


def get_free_port() -> int:
    """A port that is free now."""
    with contextlib.closing(get_socket_with_port()) as made:
        return int(made.getsockname()[1])


def create_c10d_store(
    is_server: bool,
    server_addr: str,
    server_port: int = -1,
    world_size: int = 1,
    timeout: float = 600,
    wait_for_workers: bool = True,
    retries: int = 3,
    use_libuv: Optional[bool] = None,
) -> TCPStore:
    """A TCPStore; a server with `server_port` -1 takes a free port. A server that finds its port
    taken tries `retries` times in all."""
    port = max(server_port, 0) if is_server else server_port
    for left in reversed(range(max(retries, 1))):
        try:
            return TCPStore(
                server_addr,
                port,
                world_size,
                is_server,
                timedelta(seconds=timeout),
                wait_for_workers,
                use_libuv=use_libuv is not False,
            )
        except DistNetworkError:
            if not left or not is_server:
                raise
    raise AssertionError("unreachable")


__all__ = ["create_c10d_store", "get_free_port", "get_socket_with_port"]
