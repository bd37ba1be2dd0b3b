"""The server of a TCPStore: one thread, which answers all connections.

Strangers cannot harm the processes that are connected, or those that come. A connection that has
not said hello yet is closed after GREETING_SECONDS, or when MAX_GREETING_CONNECTIONS newer ones are
waiting. It has sent 128 bytes at most by then. Where no more files can be opened, connections that
have not said hello make room.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import errno
import heapq
import hmac
import itertools
import os
import secrets
import selectors
import socket
import struct
import threading
import time
from collections import defaultdict
from typing import Any, Dict, List, Optional, Set, Tuple

from treadle.distributed._stores import protocol
from treadle.distributed._stores.table import READING, Request, Table

GREETING_SECONDS = 5.0
MAX_GREETING_CONNECTIONS = 128
_CHUNK = 1 << 16
_MAX_UNSENT = 1 << 20  # bytes of replies; a client with more is not read from until it takes them
_NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class _Client:
    """A connection."""

    def __init__(self, connection: socket.socket, end: float) -> None:
        self.connection = connection
        self.greeting_ends: Optional[float] = end  # None once it has said hello
        self.challenge: Optional[Tuple[bytes, bytes]] = None  # the numbers of client and server
        self.received = bytearray()
        self.unsent = bytearray()
        self.waiting: Optional[_Waiting] = None
        self.will: Optional[Request] = None  # what is set when the connection ends


class _Waiting:
    """A request whose answer waits for others."""

    def __init__(self, client: _Client, request: Request) -> None:
        self.client = client
        self.request = request


class Server:
    """Answers the clients at these listening sockets."""

    def __init__(self, listeners: List[socket.socket], secret: bytes) -> None:
        self._listeners = listeners
        self._secret = secret
        self.port: int = listeners[0].getsockname()[1]
        self._table = Table()
        self._selector = selectors.DefaultSelector()
        self._greeting: Dict[_Client, None] = {}  # in the order of their coming
        self._clients: Set[_Client] = set()
        self._waiting: Dict[str, Dict[_Waiting, None]] = defaultdict(dict)
        self._ends: List[Tuple[float, int, _Waiting]] = []
        self._numbers = itertools.count()
        self._paused_until: Optional[float] = None
        self._wake, self._woken = socket.socketpair()
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        for listener in listeners:
            listener.setblocking(False)
            self._selector.register(listener, selectors.EVENT_READ, listener)
        self._owner = os.getpid()
        self._thread = threading.Thread(target=self._serve, name="TCPStore", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close all connections, and end the thread."""
        if os.getpid() != self._owner:
            return  # a copy made by fork(): the sockets are the parent's
        with contextlib.suppress(OSError):
            self._woken.send(b"x")
        if self._thread is not threading.current_thread():
            self._thread.join(5)

    # ---- The loop ----

    def _serve(self) -> None:
        try:
            while True:
                for key, events in self._selector.select(self._until_next()):
                    if key.fileobj is self._wake:
                        return
                    if isinstance(key.data, _Client):
                        self._serve_client(key.data, events)
                    else:
                        self._accept(key.data)
                self._end_what_is_late()
        finally:
            for client in list(self._clients):
                self._drop(client)
            for each in (*self._listeners, self._wake, self._woken):
                each.close()
            self._selector.close()

    def _until_next(self) -> Optional[float]:
        """Seconds until something is late."""
        ends = [end for end, _, _ in self._ends[:1]]
        for client in itertools.islice(self._greeting, 1):
            assert client.greeting_ends is not None
            ends.append(client.greeting_ends)
        if self._paused_until is not None:
            ends.append(self._paused_until)
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def _end_what_is_late(self) -> None:
        now = time.monotonic()
        while self._ends and self._ends[0][0] <= now:
            waiting = heapq.heappop(self._ends)[2]
            if waiting.client.waiting is waiting:
                self._reply(waiting, protocol.LATE, [])
        for client in list(self._greeting):
            if client.greeting_ends is None or client.greeting_ends > now:
                break
            self._drop(client)
        if self._paused_until is not None and self._paused_until <= now:
            self._paused_until = None
            for listener in self._listeners:
                self._selector.register(listener, selectors.EVENT_READ, listener)

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(64):  # then others have their turn
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NO_FILES:
                    self._make_room()
                    return
                continue  # it was closed before it was accepted
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            client = _Client(connection, time.monotonic() + GREETING_SECONDS)
            self._clients.add(client)
            self._greeting[client] = None
            self._selector.register(connection, selectors.EVENT_READ, client)
            if len(self._greeting) > MAX_GREETING_CONNECTIONS:
                self._drop(next(iter(self._greeting)))

    def _make_room(self) -> None:
        """Let connections be accepted again when no file is left for one."""
        if self._greeting:
            for client in list(self._greeting)[: 1 + len(self._greeting) // 2]:
                self._drop(client)
        elif self._paused_until is None:
            self._paused_until = time.monotonic() + 0.1
            for listener in self._listeners:
                self._selector.unregister(listener)

    def _drop(self, client: _Client) -> None:
        if client not in self._clients:
            return
        self._clients.remove(client)
        self._greeting.pop(client, None)
        if client.waiting is not None:
            self._forget(client.waiting)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(client.connection)
        client.connection.close()
        if client.will is not None:
            self._table.apply(client.will)
            self._look_again(client.will)

    # ---- Clients ----

    def _serve_client(self, client: _Client, events: int) -> None:
        if client not in self._clients:
            return  # dropped since the events were found
        try:
            if events & selectors.EVENT_WRITE:
                self._send(client, b"")
            if events & selectors.EVENT_READ:
                got = client.connection.recv(_CHUNK)
                if not got:
                    self._drop(client)
                    return
                client.received += got
            self._take_frames(client)
        except BlockingIOError:
            pass
        except (OSError, ValueError, UnicodeDecodeError, struct.error, MemoryError):
            self._drop(client)  # it speaks another language, or is gone

    def _take_frames(self, client: _Client) -> None:
        head = protocol.LENGTH.size
        while client.waiting is None and len(client.unsent) <= _MAX_UNSENT:
            received = client.received
            if len(received) < head:
                return
            (length,) = protocol.LENGTH.unpack_from(received)
            is_greeting = client.greeting_ends is not None
            if length > (protocol.MAX_GREETING if is_greeting else protocol.MAX_FRAME):
                raise ValueError("expected a shorter frame")
            if len(received) < head + length:
                return
            content = bytes(memoryview(received)[head : head + length])
            del received[: head + length]
            if is_greeting:
                self._greet(client, content)
            else:
                self._answer(client, *protocol.request_of(content))
        if len(client.received) > protocol.MAX_FRAME:
            raise ValueError("expected a client that waits for its replies")

    def _greet(self, client: _Client, content: bytes) -> None:
        if client.challenge is None:
            if len(content) != len(protocol.MAGIC) + protocol.NONCE:
                raise ValueError("expected a greeting")
            magic, theirs = content[: -protocol.NONCE], content[-protocol.NONCE :]
            if magic != protocol.MAGIC:
                raise ValueError("expected a greeting")
            mine = secrets.token_bytes(protocol.NONCE)
            client.challenge = theirs, mine
            shown = protocol.proof(self._secret, b"server", theirs, mine)
            self._send(client, protocol.frame(bytes([bool(self._secret)]) + mine + shown))
            return
        expected = protocol.proof(self._secret, b"client", *client.challenge)
        if not hmac.compare_digest(expected, content):
            raise ValueError("expected the proof of the secret")
        client.greeting_ends = None
        del self._greeting[client]
        self._send(client, protocol.frame(protocol.WELCOME))

    def _send(self, client: _Client, data: bytes) -> None:
        client.unsent += data
        if client.unsent:
            with contextlib.suppress(BlockingIOError):
                sent = client.connection.send(memoryview(client.unsent)[:_CHUNK])
                del client.unsent[:sent]
        self._selector.modify(
            client.connection,
            selectors.EVENT_READ | (selectors.EVENT_WRITE if client.unsent else 0)
            if len(client.unsent) <= _MAX_UNSENT
            else selectors.EVENT_WRITE,
            client,
        )

    # ---- Requests ----

    def _answer(self, client: _Client, request: Request, seconds: float) -> None:
        waiting = _Waiting(client, request)
        if request.action == "will":
            client.will = request._replace(action="set")
            self._reply(waiting, protocol.ANSWERED, [])
            return
        if self._try(waiting):
            if request.action not in READING:
                self._look_again(request)
            return
        client.waiting = waiting
        for key in request.keys:
            self._waiting[key][waiting] = None
        end = time.monotonic() + seconds
        heapq.heappush(self._ends, (end, next(self._numbers), waiting))
        if len(self._ends) > 1000 + 2 * len(self._clients):  # most have been answered
            self._ends = [each for each in self._ends if each[2].client.waiting is each[2]]
            heapq.heapify(self._ends)

    def _try(self, waiting: _Waiting) -> bool:
        """Reply if there is an answer."""
        try:
            answer = self._table.apply(waiting.request)
        except (ValueError, TypeError) as error:
            self._reply(waiting, protocol.REFUSED, [str(error).encode()])
            return True
        if answer is None:
            return False
        self._reply(waiting, protocol.ANSWERED, answer)
        return True

    def _look_again(self, request: Request) -> None:
        """Answer what waits for the keys that a request may have changed."""
        for key in request.keys:
            for waiting in list(self._waiting.get(key, ())):
                with contextlib.suppress(OSError):
                    self._try(waiting)

    def _reply(self, waiting: _Waiting, status: int, parts: List[bytes]) -> None:
        client = waiting.client
        self._forget(waiting)
        try:
            self._send(client, protocol.frame(protocol.reply_bytes(status, parts)))
        except (OSError, struct.error):
            self._drop(client)
            return
        if client.received:  # a client that does not wait for its replies
            with contextlib.suppress(OSError):
                self._selector.modify(
                    client.connection, selectors.EVENT_READ | selectors.EVENT_WRITE, client
                )

    def _forget(self, waiting: _Waiting) -> None:
        waiting.client.waiting = None
        for key in waiting.request.keys:
            of_key: Any = self._waiting.get(key)
            if of_key is not None:
                of_key.pop(waiting, None)
                if not of_key:
                    del self._waiting[key]
