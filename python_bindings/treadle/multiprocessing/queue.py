"""Queues whose items may hold tensors: these go through shared memory.

Example:

    queue = Queue(ctx=get_context("spawn"))
    queue.put({"loss": loss, "images": images})
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from multiprocessing import queues
from typing import TYPE_CHECKING, Any, Optional

from treadle.multiprocessing.connection import Parcel, Pipe


class _Carrying:
    """Puts connections that carry descriptors in place of a queue's."""

    if TYPE_CHECKING:  # what a queue has
        _reader: Any
        _writer: Any

        def __init__(self, maxsize: int = 0, *, ctx: Any) -> None: ...
        def put(self, obj: Any, block: bool = True, timeout: Optional[float] = None) -> None: ...
        def _reset(self) -> None: ...

    def _use_own_connections(self) -> None:
        self._reader.close()
        self._writer.close()
        self._reader, self._writer = Pipe(duplex=False)


class _Fed(_Carrying):
    """A queue whose pipe a thread feeds."""

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        super().__init__(maxsize, ctx=ctx)
        self._use_own_connections()
        self._reset()

    def put(self, obj: Any, block: bool = True, timeout: Optional[float] = None) -> None:
        """Put an item; tensors in it are shared, not copied. An item that cannot be sent raises."""
        super().put(Parcel(obj), block, timeout)


class Queue(_Fed, queues.Queue):
    """multiprocessing.Queue."""


class JoinableQueue(_Fed, queues.JoinableQueue):
    """multiprocessing.JoinableQueue."""


class SimpleQueue(_Carrying, queues.SimpleQueue):
    """multiprocessing.SimpleQueue: a pipe with locks."""

    def __init__(self, *, ctx: Any) -> None:
        super().__init__(ctx=ctx)
        self._use_own_connections()
        self._poll = self._reader.poll

    def put(self, obj: Any) -> None:
        """Put an item; tensors in it are shared, not copied."""
        super().put(Parcel(obj))
