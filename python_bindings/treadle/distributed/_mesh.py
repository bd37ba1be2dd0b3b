"""Connections from this process to every other one, and what has come over them.

A message has a channel, a tag and a number, and waits under these until it is asked for, so that
messages may come in any order. One thread reads from each connection; where it ends, what waits for
that process fails.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import struct
import threading
import time
from typing import Any, Dict, NamedTuple, Tuple

from treadle.distributed import _wire
from treadle.distributed.errors import DistNetworkError
from treadle.distributed.store import Store, TCPStore

_HELLO = struct.Struct("!32sI")  # the secret of the group, the rank
_HEADER = struct.Struct("!QqQIQ")  # channel, tag, number, kind, length


class Key(NamedTuple):
    """Under what a message waits."""

    source: int  # the other process
    channel: int
    tag: int
    number: int


Message = Tuple[int, bytearray]  # kind, content


class Mesh:
    """The connections of one process."""

    def __init__(self, rank: int, connections: Dict[int, socket.socket], timeout: float) -> None:
        self.rank = rank
        self._connections = connections
        self._sending = {peer: threading.Lock() for peer in connections}
        self._came: Dict[Key, Message] = {}
        self._gone: Dict[int, str] = {}
        self._changed = threading.Condition()
        limit = struct.pack("@ll", int(timeout), int(timeout % 1 * 1e6))
        for peer, connection in connections.items():
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            name = f"from rank {peer}"
            threading.Thread(target=self._read, args=(peer,), name=name, daemon=True).start()

    def _read(self, peer: int) -> None:
        connection = self._connections[peer]
        try:
            while True:
                header = _wire.read(connection, _HEADER.size)
                channel, tag, number, kind, length = _HEADER.unpack(header)
                content = _wire.read(connection, length)
                self._deliver(Key(peer, channel, tag, number), (kind, content))
        except (OSError, MemoryError) as error:
            with self._changed:
                self._gone[peer] = str(error)
                self._changed.notify_all()

    def _deliver(self, key: Key, message: Message) -> None:
        with self._changed:
            self._came[key] = message
            self._changed.notify_all()

    def send(self, to: Key, kind: int, data: Any, function: str) -> None:
        """Send the bytes of an object with a buffer, under a key whose source is the receiver.
        DistNetworkError if the process is gone, or takes nothing for as long as the timeout."""
        peer = to.source
        header = _HEADER.pack(to.channel, to.tag, to.number, kind, memoryview(data).nbytes)
        try:
            with self._sending[peer]:
                self._connections[peer].sendall(header)
                self._connections[peer].sendall(data)
        except BlockingIOError:
            raise DistNetworkError(
                f"{function}: expected rank {peer} to take data in time, got no answer"
            ) from None
        except OSError as error:
            raise DistNetworkError(
                f"{function}: expected rank {peer} to be there, but it is gone ({error})"
            ) from None

    def has(self, key: Key) -> bool:
        """Whether the message is there."""
        return key in self._came

    def receive(self, keys: Tuple[Key, ...], timeout: float, function: str) -> Tuple[Key, Message]:
        """The first message to come of those that these keys name, for a function that errors name.
        DistNetworkError if their senders are gone, or none comes within `timeout` seconds.
        """
        with self._changed:
            key = self.wait(keys, timeout, function)
            return key, self._came.pop(key)

    def wait(self, keys: Tuple[Key, ...], timeout: float, function: str) -> Key:
        """As receive(), but the message stays: its key."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                for key in keys:
                    if key in self._came:
                        return key
                lost = [key.source for key in keys if key.source in self._gone]
                if len(lost) == len(keys):
                    raise DistNetworkError(
                        f"{function}: expected data from rank {lost[0]}, but it is gone "
                        f"({self._gone[lost[0]]})"
                    )
                left = deadline - time.monotonic()
                if left <= 0:
                    waited = ", ".join(str(key.source) for key in keys)
                    raise DistNetworkError(
                        f"{function}: expected data from rank {waited} within {timeout:g} s, "
                        "got none"
                    )
                self._changed.wait(left)

    def close(self) -> None:
        """Say that no more is sent. Messages on their way still arrive, at both ends."""
        for peer, connection in self._connections.items():
            with self._sending[peer]:
                try:
                    connection.shutdown(socket.SHUT_WR)
                except OSError:
                    connection.close()


def _accept(
    listener: socket.socket,
    secret: bytes,
    wanted: set,
    deadline: float,
    found: Dict[int, socket.socket],
) -> None:
    """Take the connections of the ranks `wanted` into `found`. Others, which do not know the
    secret, are closed."""
    while wanted - set(found):
        left = deadline - time.monotonic()
        listener.settimeout(max(left, 0.001))
        try:
            connection, _ = listener.accept()
            connection.settimeout(max(left, 0.001))
            said, rank = _HELLO.unpack(_wire.read(connection, _HELLO.size))
        except socket.timeout:
            missing = ", ".join(map(str, sorted(wanted - set(found))))
            raise DistNetworkError(
                f"init_process_group: expected a connection from rank {missing} in time, got none"
            ) from None
        except OSError:
            continue
        if hmac.compare_digest(said, secret) and rank in wanted:
            _wire.prepare(connection)
            found[rank] = connection
        else:
            connection.close()


def connect_all(store: Store, rank: int, world_size: int, timeout: float) -> Mesh:
    """The mesh of the processes that see this store, each with its rank. Lower ranks are connected
    to, higher ones accepted."""
    deadline = time.monotonic() + timeout
    if rank == 0:
        store.set("secret", secrets.token_hex(16))
    secret = store.get("secret")
    host = store.local_host if isinstance(store, TCPStore) else "127.0.0.1"
    connections: Dict[int, socket.socket] = {}
    with _wire.listen(host) as listener, contextlib.ExitStack() as on_error:
        on_error.callback(lambda: [_wire.close(c) for c in connections.values()])  # type: ignore[func-returns-value]
        store.set(f"address/{rank}", " ".join(map(str, listener.getsockname()[:2])))
        for peer in range(rank):
            host, port = store.get(f"address/{peer}").decode().split()
            connections[peer] = _wire.connect((host, int(port)), deadline)
            connections[peer].sendall(_HELLO.pack(secret, rank))
        _accept(listener, secret, set(range(rank + 1, world_size)), deadline, connections)
        on_error.pop_all()
    return Mesh(rank, connections, timeout)


__all__ = ["Key", "Mesh", "connect_all"]
