"""How the processes of a group find each other: from an address, or the environment, to a store.

env://                       MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE of the environment
tcp://localhost:29500        rank and world_size are given, or in the address: ?rank=0&world_size=2
file:///tmp/shared           the same, with a file that does not exist yet

Where RANK is not set, env:// takes what Slurm, Open MPI or MPICH say.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import os
from datetime import timedelta
from typing import Any, Callable, Dict, Iterator, Optional, Tuple
from urllib.parse import ParseResult, parse_qsl, urlparse

from treadle.distributed import _launchers
from treadle.distributed._stores.tcp import _is_agents
from treadle.distributed.constants import default_pg_timeout
from treadle.distributed.store import FileStore, PrefixStore, Store, TCPStore

Found = Tuple[Store, int, int]  # rank, number of processes
Handler = Callable[..., Iterator[Found]]

_handlers: Dict[str, Handler] = {}
_stores_of_agent = itertools.count()


def register_rendezvous_handler(scheme: str, handler: Handler) -> None:
    """Let a function find the processes for addresses of a scheme. It is called with the address,
    in whose query are `rank` and `world_size` where they were given, and with the keyword arguments
    of rendezvous(); it yields (store, rank, world_size). RuntimeError if the scheme has one."""
    if scheme in _handlers:
        raise RuntimeError(
            f"register_rendezvous_handler: expected a scheme without a handler, got {scheme}://"
        )
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[Found]:
    """Yields the store at an address, this process's rank, and the number of processes. -1 stands
    for what the address or the environment says. `timeout` is how long the store waits.

    RuntimeError for an address of an unknown scheme; the iterator raises ValueError where something
    is not given.
    """
    if not isinstance(url, str):
        raise RuntimeError(f"rendezvous: expected url as a str, got {type(url).__name__}")
    parts = urlparse(url)
    for name, given in (("rank", rank), ("world_size", world_size)):
        if not isinstance(given, int):
            kind = type(given).__name__
            raise RuntimeError(f"rendezvous: expected {name} as an int, got {kind}")
        if given >= 0:
            said = dict(parse_qsl(parts.query))
            if int(said.get(name, given)) != given:
                raise ValueError(
                    f"init_process_group: expected {name} = {said[name]} as in {url}, got {given}"
                )
            query = "&".join(f"{k}={v}" for k, v in {**said, name: str(given)}.items())
            parts = parts._replace(query=query)
    if parts.scheme not in _handlers:
        known = ", ".join(f"{scheme}://" for scheme in sorted(_handlers))
        raise RuntimeError(f"init_process_group: expected {known}, got {url!r}")
    return _handlers[parts.scheme](_text(parts), **kwargs)


def _text(parts: ParseResult) -> str:
    # urlunparse() drops the slashes of env://?rank=0.
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme}://{parts.netloc}{parts.path}{query}"


def _number(name: str, said: Dict[str, str], scheme: str) -> int:
    if name not in said:
        raise ValueError(
            f"init_process_group: expected {name} for {scheme}://, got none; "
            + ("set the environment variable" if scheme == "env" else "give the argument")
        )
    try:
        return int(said[name])
    except ValueError:
        raise ValueError(
            f"init_process_group: expected {name} as a number, got {said[name]!r}"
        ) from None


def _tcp_store(host: str, port: int, rank: int, timeout: timedelta) -> Store:
    """The store at an address. Rank 0 serves it, if the agent that began this process does not."""
    if _is_agents(host, port):
        # It outlives the groups of this process: each group has keys of its own.
        store = TCPStore(host, port, timeout=timeout, wait_for_workers=False)
        group = os.environ.get("TREADLE_STORE_PREFIX", "workers")
        return PrefixStore(f"{group}/{next(_stores_of_agent)}", store)
    return TCPStore(host, port, None, rank == 0, timeout, wait_for_workers=False, multi_tenant=True)


def _env(url: str, timeout: timedelta = default_pg_timeout, **_: Any) -> Iterator[Found]:
    query = dict(parse_qsl(urlparse(url).query))
    said = dict(os.environ)
    place: Optional[_launchers.Place] = None
    if "RANK" not in said:
        place = _launchers.place(said)
    if place is not None:
        said["RANK"] = str(place.rank)
        if place.world_size is not None:
            said.setdefault("WORLD_SIZE", str(place.world_size))
        if place.host is not None:
            said.setdefault("MASTER_ADDR", place.host)
        said.setdefault("MASTER_PORT", str(place.port))
    said.update(
        {{"rank": "RANK", "world_size": "WORLD_SIZE"}.get(k, k): v for k, v in query.items()}
    )
    rank, world_size = _number("RANK", said, "env"), _number("WORLD_SIZE", said, "env")
    host = said.get("MASTER_ADDR")
    if not host:
        raise ValueError(
            "init_process_group: expected MASTER_ADDR for env://, got none; set the environment "
            "variable"
        )
    port = _number("MASTER_PORT", said, "env")
    yield _tcp_store(host, port, rank, timeout), rank, world_size


def _tcp(url: str, timeout: timedelta = default_pg_timeout, **_: Any) -> Iterator[Found]:
    parts = urlparse(url)
    said = dict(parse_qsl(parts.query))
    rank, world_size = _number("rank", said, "tcp"), _number("world_size", said, "tcp")
    if parts.hostname is None or parts.port is None:
        raise ValueError(f"init_process_group: expected tcp://host:port, got {url!r}")
    yield _tcp_store(parts.hostname, parts.port, rank, timeout), rank, world_size


def _file(url: str, timeout: timedelta = default_pg_timeout, **_: Any) -> Iterator[Found]:
    parts = urlparse(url)
    said = dict(parse_qsl(parts.query))
    rank, world_size = _number("rank", said, "file"), _number("world_size", said, "file")
    if not parts.path:
        raise ValueError(f"init_process_group: expected file:///path, got {url!r}")
    store = FileStore(parts.path, world_size)
    store.set_timeout(timeout)
    yield store, rank, world_size


register_rendezvous_handler("env", _env)
register_rendezvous_handler("file", _file)
register_rendezvous_handler("tcp", _tcp)

__all__ = ["register_rendezvous_handler", "rendezvous"]
