"""The contexts of `multiprocessing`, one for each way to start a process, with queues, pipes and
pools that share tensors.

    context = get_context("spawn")
    process = context.Process(target=train, args=(context.Queue(),))
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import multiprocessing
from multiprocessing import context
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    _Context = context.BaseContext  # what the mixin is mixed with
else:
    _Context = object


class _Sharing(_Context):
    def Queue(self, maxsize: int = 0) -> Any:  # noqa: N802
        """A queue between processes."""
        from treadle.multiprocessing.queue import Queue

        return Queue(maxsize, ctx=self.get_context())

    def JoinableQueue(self, maxsize: int = 0) -> Any:  # noqa: N802
        """A queue that can be waited for: see task_done() and join()."""
        from treadle.multiprocessing.queue import JoinableQueue

        return JoinableQueue(maxsize, ctx=self.get_context())

    def SimpleQueue(self) -> Any:  # noqa: N802
        """A queue that is a pipe with locks."""
        from treadle.multiprocessing.queue import SimpleQueue

        return SimpleQueue(ctx=self.get_context())

    def Pipe(self, duplex: bool = True) -> tuple:  # noqa: N802
        """Two connected ends."""
        from treadle.multiprocessing.connection import Pipe

        return Pipe(duplex)


class ForkContext(_Sharing, context.ForkContext):
    """Processes begin as copies of this one."""


class SpawnContext(_Sharing, context.SpawnContext):
    """Processes begin anew."""


class ForkServerContext(_Sharing, context.ForkServerContext):
    """Processes begin as copies of a server's."""


_contexts = {
    "fork": ForkContext(),
    "spawn": SpawnContext(),
    "forkserver": ForkServerContext(),
}


def get_context(method: Optional[str] = None) -> Any:
    """The context of a start method; of the one in use if none is named. ValueError for a name that
    is none."""
    standard = multiprocessing.get_context(method)
    return _contexts[standard.get_start_method()]
