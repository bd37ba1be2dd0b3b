"""Groups of processes of treadle.distributed, for tests.

together(3, function, 1, 2)  # what function(rank, 3, 1, 2) returns in each of three ranks
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import socket
from datetime import timedelta
from typing import Any, Callable, Iterator, List

import treadle
import treadle.distributed as dist
from child_processes import Child, results

SOON = timedelta(seconds=20)


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port at which only those listen that know it: the system gives it to nobody else meanwhile,
    as it is bound."""
    with socket.socket() as holder:
        holder.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # those that listen bind it too
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])


def joined(rank: int, world: int, url: str, function: Callable, *args: Any) -> Any:
    """In a child: the result of the function in a group."""
    treadle.set_num_threads(1)
    dist.init_process_group("gloo", url, SOON, world, rank)
    result = function(rank, world, *args)
    if dist.is_initialized():
        dist.destroy_process_group()
    return result


def together(world: int, function: Callable, *args: Any) -> List[Any]:
    """The result of the function in each of so many processes of a group."""
    with reserved_port() as port:
        url = f"tcp://127.0.0.1:{port}"
        return results([Child(joined, rank, world, url, function, *args) for rank in range(world)])
