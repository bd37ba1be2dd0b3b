"""Connections between processes that carry descriptors beside what is sent.

A connection is one of the standard library's with a second channel, a Unix socket, for the
descriptors of shared memory. They are sent before the message that needs them, and each message
says how many came. Descriptors can be received when their sender is gone, and the system closes
those that are never received.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import array
import errno
import os
import socket
import struct
import threading
from multiprocessing import connection, reduction
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, Optional

from treadle.multiprocessing.reductions import arriving, dumps

_HEADER = struct.Struct("!QI")  # bytes of the message, descriptors beside it
_AT_ONCE = 253  # most descriptors that the system takes in one call
_JOIN_BELOW = 16384  # a shorter message goes out in one write with its header


class _Thread(threading.local):
    # The memories to go beside the next message that this thread sends, and the descriptors that
    # came beside the one that it received last. A queue of the standard library pickles and sends,
    # and receives and unpickles, in two steps, with its lock held for one of them only.
    memories: list = []
    arrived: list[int] = []


_thread = _Thread()


class Connection(connection.Connection):
    """One end of a pipe: `handle` is of the pipe or socket for messages, `channel` of the socket
    for descriptors."""

    if TYPE_CHECKING:  # parts of the base that its types leave out
        _check_closed: Any
        _check_writable: Any
        _send: Any
        _recv: Any

    def __init__(
        self, handle: int, channel: int, readable: bool = True, writable: bool = True
    ) -> None:
        self._channel = socket.socket(fileno=channel)
        self._channel.setblocking(True)
        super().__init__(handle, readable, writable)

    def _close(self, *args: Any) -> None:
        self._channel.close()
        super()._close(*args)  # type: ignore[misc]

    def send(self, obj: Any) -> None:
        """Send an object; the tensors in it are not copied."""
        self._check_closed()
        self._check_writable()
        payload, memories = dumps(obj)
        if memories:
            payload = ForkingPickler.dumps(_Packed(payload))
        _thread.memories = memories
        self._send_bytes(payload)

    # ---- what all messages go through ----------------------------------------------------------

    def _send_bytes(self, buf: Any) -> None:
        memories, _thread.memories = _thread.memories, []
        for first in range(0, len(memories), _AT_ONCE):
            some = [m._share_fd_cpu_()[0] for m in memories[first : first + _AT_ONCE]]
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", some))
            self._channel.sendmsg([b"\0"], [rights])
        header = _HEADER.pack(len(buf), len(memories))
        if len(buf) < _JOIN_BELOW:
            self._send(header + buf)
        else:
            self._send(header)
            self._send(buf)

    def _recv_bytes(self, maxsize: Optional[int] = None) -> Any:
        _drop(_thread.arrived)
        length, count = _HEADER.unpack(self._recv(_HEADER.size).getvalue())
        if maxsize is not None and length > maxsize:
            return None
        message = self._recv(length)
        _thread.arrived = self._receive_descriptors(count)
        return message

    def _receive_descriptors(self, count: int) -> list[int]:
        descriptors = array.array("i")
        try:
            while len(descriptors) < count:
                room = min(count - len(descriptors), _AT_ONCE)
                byte, rights, _, _ = self._channel.recvmsg(
                    1, socket.CMSG_SPACE(room * descriptors.itemsize)
                )
                if not byte:
                    raise EOFError
                for _, _, data in rights:
                    descriptors.frombytes(data[: len(data) // descriptors.itemsize * 4])
                if not rights or len(descriptors) % _AT_ONCE and len(descriptors) < count:
                    raise OSError(
                        errno.EMFILE,
                        f"expected {count} descriptors of shared memory, got {len(descriptors)}: "
                        "this process has too many files open (ulimit -n)",
                    )
        except BaseException:
            _drop(descriptors.tolist())
            raise
        return descriptors.tolist()


def _drop(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


class _Packed:
    """A pickle that is read with the descriptors that came beside the message it is in."""

    def __init__(self, payload: Any) -> None:
        self.payload = payload

    def __reduce__(self) -> tuple:
        return _unpack, (bytes(self.payload),)


class Parcel:
    """An object for a queue of the standard library, which will send it from another thread. It is
    pickled here: what cannot be sent raises where it is put, and not where nobody sees it."""

    def __init__(self, obj: Any) -> None:
        payload, self.memories = dumps(obj)
        self.payload = bytes(payload)

    def __reduce__(self) -> tuple:
        _thread.memories = self.memories  # go with the message that this thread sends next
        return _unpack, (self.payload,)


def _unpack(payload: bytes) -> Any:
    descriptors, _thread.arrived = _thread.arrived, []
    with arriving(descriptors):
        return ForkingPickler.loads(payload)


def Pipe(duplex: bool = True) -> tuple[Connection, Connection]:  # noqa: N802
    """Two connections, each the other's end. Unless `duplex`, the first receives and the second
    sends."""
    ends = connection.Pipe(duplex)
    channels = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    made = []
    for end, channel in zip(ends, channels):
        made.append(
            Connection(_taken(end), channel.detach(), readable=end.readable, writable=end.writable)
        )
    return made[0], made[1]


def _taken(end: connection.Connection) -> int:
    """The descriptor of a connection, which it gives up."""
    handle, end._handle = end._handle, None  # type: ignore[attr-defined]
    return handle


def _rebuild(handle: Any, channel: Any, readable: bool, writable: bool) -> Connection:
    return Connection(handle.detach(), channel.detach(), readable, writable)


def _reduce(end: Connection) -> tuple:
    handle, channel = reduction.DupFd(end.fileno()), reduction.DupFd(end._channel.fileno())
    return _rebuild, (handle, channel, end.readable, end.writable)


ForkingPickler.register(Connection, _reduce)
