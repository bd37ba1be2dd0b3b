"""The ways to meet that are known: `c10d`, where any agents meet at an address, and `static`, where
each agent has a number. Packages add others as entry points of the group
`treadle.distributed.rendezvous` or `torchrun.handlers`.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import time
from datetime import timedelta
from importlib import metadata
from typing import Optional

from treadle.distributed.elastic.rendezvous.api import (
    RendezvousConnectionError,
    RendezvousHandler,
    RendezvousParameters,
    rendezvous_handler_registry,
)
from treadle.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler
from treadle.distributed.elastic.rendezvous.utils import (
    _matches_machine_hostname,
    parse_rendezvous_endpoint,
)
from treadle.distributed.errors import DistError, DistNetworkError
from treadle.distributed.store import TCPStore

_GROUPS = ("treadle.distributed.rendezvous", "torchrun.handlers")


def _store(host: str, port: int, is_host: Optional[bool], seconds: float) -> TCPStore:
    """The store at an address: served here if this is the host, and no other agent of the machine
    serves it already."""
    timeout = timedelta(seconds=seconds)
    try:
        if is_host or (is_host is None and _matches_machine_hostname(host)):
            try:
                return TCPStore(host, port, None, True, timeout, wait_for_workers=False)
            except DistNetworkError:
                if is_host:
                    raise
        return TCPStore(host, port, None, False, timeout, wait_for_workers=False)
    except DistError as error:
        raise RendezvousConnectionError(
            f"rendezvous: expected a store at {host}:{port}, got none ({error})"
        ) from None


def _create_c10d_handler(params: RendezvousParameters) -> RendezvousHandler:
    host, port = parse_rendezvous_endpoint(params.endpoint, default_port=29400)
    seconds = float(params.get("read_timeout", 60))
    store = _store(host, port, params.get_as_bool("is_host"), seconds)
    return DynamicRendezvousHandler("c10d", store, (host, store.port), params)


def _create_static_handler(params: RendezvousParameters) -> RendezvousHandler:
    if params.min_nodes != params.max_nodes:
        raise ValueError(
            f"rendezvous: expected one number of nodes for static, got {params.min_nodes}:"
            f"{params.max_nodes}"
        )
    rank = params.get_as_int("rank")
    if rank is None or not 0 <= rank < params.max_nodes:
        raise ValueError(
            f"rendezvous: expected the rank of the node in [0, {params.max_nodes}) for static, "
            f"got {rank}"
        )
    host, port = parse_rendezvous_endpoint(params.endpoint, default_port=29500)
    end = time.monotonic() + float(params.get("timeout", 600))
    store = _store(host, port, rank == 0, end - time.monotonic())
    return DynamicRendezvousHandler("static", store, (host, store.port), params, rank)


_register = rendezvous_handler_registry.register


def _register_default_handlers() -> None:
    """Make the ways to meet known."""
    _register("c10d", _create_c10d_handler)
    _register("static", _create_static_handler)


def _register_out_of_tree_handlers(name: str) -> None:
    for group in _GROUPS:
        for entry in metadata.entry_points(group=group):
            if entry.name == name:
                _register(name, entry.load()())


def get_rendezvous_handler(params: RendezvousParameters) -> RendezvousHandler:
    """The handler that the parameters ask for. ValueError if its backend is not known."""
    if params.backend not in ("c10d", "static"):
        _register_out_of_tree_handlers(params.backend)
    return rendezvous_handler_registry.create_handler(params)


_register_default_handlers()

__all__ = ["get_rendezvous_handler"]
