"""multiprocessing, with tensors that are shared: the queues, pipes, pools and processes of the
standard library, by its names, in which a tensor goes to another process without being copied.

    import treadle.multiprocessing as mp

    def add_one(queue):
        queue.get().add_(1)              # seen by the sender

    if __name__ == "__main__":
        queue, x = mp.Queue(), treadle.zeros(3)
        process = mp.Process(target=add_one, args=(queue,))
        process.start()
        queue.put(x)                     # moves the memory of x into shared memory, once
        process.join()

The memory goes when the last process that has a tensor over it drops that tensor or ends; it has no
name, so that nothing is ever left behind. Results of operations that require grad are refused:
their history cannot go with them. The queues of `multiprocessing` itself share tensors as well.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import multiprocessing as _multiprocessing
import resource as _resource
import sys as _sys
import warnings as _warnings
from multiprocessing import *  # noqa: F401,F403
from typing import Any, Callable, Iterable, Optional

from treadle.multiprocessing import reductions
from treadle.multiprocessing.connection import Pipe as Pipe
from treadle.multiprocessing.contexts import get_context
from treadle.multiprocessing.pool import Pool as _Pool
from treadle.multiprocessing.reductions import init_reductions
from treadle.multiprocessing.spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_multiprocessing.__all__,
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "init_reductions",
    "reductions",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]


def Queue(maxsize: int = 0) -> Any:  # type: ignore[no-redef]  # noqa: N802
    """A queue between processes."""
    return get_context().Queue(maxsize)


def JoinableQueue(maxsize: int = 0) -> Any:  # type: ignore[no-redef]  # noqa: N802
    """A queue between processes that can be waited for."""
    return get_context().JoinableQueue(maxsize)


def SimpleQueue() -> Any:  # type: ignore[no-redef]  # noqa: N802
    """A queue between processes that is a pipe with locks."""
    return get_context().SimpleQueue()


def Pool(  # type: ignore[no-redef]  # noqa: N802
    processes: Optional[int] = None,
    initializer: Optional[Callable] = None,
    initargs: Iterable = (),
    maxtasksperchild: Optional[int] = None,
) -> _Pool:
    """A pool of processes."""
    return _Pool(processes, initializer, initargs, maxtasksperchild)


# Programs set a strategy to get round the limits of one of them. Here there is one way, which has
# neither the names of the one nor the need of the other that the sender lives; but each memory is
# an open file, of which a process may have so many.
_STRATEGIES = {"file_descriptor", "file_system"} if _sys.platform == "linux" else {"file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that set_sharing_strategy takes."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The name that was set."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Memory is shared in the same way by any name. "file_system" is set by programs that share
    more tensors than they may open files: it raises the limit of this process and of those it
    starts as far as the system allows, and warns where that is not far."""
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(
            f"expected one of {', '.join(sorted(_STRATEGIES))}, got {new_strategy!r}"
        )
    if new_strategy == "file_system":
        _allow_many_files()
    _strategy = new_strategy


_FEW_FILES = 4096


def _allow_many_files() -> None:
    soft, hard = _resource.getrlimit(_resource.RLIMIT_NOFILE)
    if soft != hard:
        _resource.setrlimit(_resource.RLIMIT_NOFILE, (hard, hard))
    if 0 <= hard < _FEW_FILES:
        _warnings.warn(
            f"set_sharing_strategy: each shared tensor is an open file here, and this process may "
            f"have {hard} of them; raise the limit with `ulimit -Hn`",
            stacklevel=3,
        )
