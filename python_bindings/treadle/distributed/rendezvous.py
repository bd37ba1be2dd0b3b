"""How the processes of a group find each other: from an address, or the environment, to a store.

env://                       MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE of the environment
tcp://localhost:29500        rank and world_size are given, or in the address: ?rank=0&world_size=2
file:///tmp/shared           the same, with a file that does not exist yet
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
from datetime import timedelta
from typing import Dict, Tuple
from urllib.parse import parse_qsl, urlparse

from treadle.distributed.store import FileStore, Store, TCPStore

Found = Tuple[Store, int, int]  # rank, number of processes


def _number(name: str, given: int, elsewhere: Dict[str, str], scheme: str) -> int:
    """`given`, where it is not negative, or what is said elsewhere."""
    if given >= 0:
        return given
    if name not in elsewhere:
        raise ValueError(
            f"init_process_group: expected {name} for {scheme}://, got none; "
            + ("set the environment variable" if scheme == "env" else "give the argument")
        )
    return int(elsewhere[name])


def _tcp_store(host: str, port: int, rank: int, timeout: timedelta) -> Store:
    return TCPStore(host, port, is_master=rank == 0, timeout=timeout, wait_for_workers=False)


def rendezvous(url: str, rank: int, world_size: int, timeout: timedelta) -> Found:
    """The store at an address, and this process's rank among how many. ValueError where something
    is not given, RuntimeError for an address of another kind."""
    parts = urlparse(url)
    scheme, said = parts.scheme, dict(parse_qsl(parts.query))
    if scheme == "env":
        environment = dict(os.environ)
        rank = _number("RANK", rank, environment, scheme)
        world_size = _number("WORLD_SIZE", world_size, environment, scheme)
        host = os.environ.get("MASTER_ADDR")
        if host is None:
            raise ValueError(
                "init_process_group: expected MASTER_ADDR for env://, got none; set the "
                "environment variable"
            )
        port = _number("MASTER_PORT", -1, environment, scheme)
        return _tcp_store(host, port, rank, timeout), rank, world_size
    rank = _number("rank", rank, said, scheme)
    world_size = _number("world_size", world_size, said, scheme)
    if scheme == "tcp":
        if parts.hostname is None or parts.port is None:
            raise ValueError(f"init_process_group: expected tcp://host:port, got {url!r}")
        return _tcp_store(parts.hostname, parts.port, rank, timeout), rank, world_size
    if scheme == "file":
        if not parts.path:
            raise ValueError(f"init_process_group: expected file:///path, got {url!r}")
        store = FileStore(parts.path, world_size)
        store.set_timeout(timeout)
        return store, rank, world_size
    raise RuntimeError(f"init_process_group: expected env://, tcp:// or file://, got {url!r}")
