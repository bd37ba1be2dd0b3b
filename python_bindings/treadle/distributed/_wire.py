"""Sockets between processes: listening, connecting until a deadline, reading so many bytes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import socket
import time
from typing import Tuple

from treadle.distributed.errors import DistNetworkError

Address = Tuple[str, int]

_PAUSE = 0.02  # seconds between attempts to connect to a process that does not listen yet


def listen(host: str, port: int = 0) -> socket.socket:
    """A socket that takes connections. OSError if the port is taken."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def connect(address: Address, deadline: float) -> socket.socket:
    """A connection, tried until the time `deadline`, of time.monotonic(). DistNetworkError then."""
    while True:
        left = deadline - time.monotonic()
        try:
            connection = socket.create_connection(address, timeout=max(left, 0.001))
            if connection.getsockname() == connection.getpeername():
                # The system gave it the very port that nobody listens at yet.
                connection.close()
                raise ConnectionRefusedError("connected to itself")
        except OSError as error:
            if left < _PAUSE:
                raise DistNetworkError(
                    f"connect: expected a process that listens at {address[0]}:{address[1]}, "
                    f"got none in time ({error})"
                ) from None
            time.sleep(_PAUSE)
        else:
            prepare(connection)
            return connection


def prepare(connection: socket.socket) -> None:
    """Settings of a connection in use: messages are sent at once, and a dead host is noticed."""
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def read(connection: socket.socket, count: int) -> bytearray:
    """That many bytes. ConnectionError if the other end closes before."""
    data = bytearray(count)
    left = memoryview(data)
    while len(left):
        got = connection.recv_into(left)
        if got == 0:
            raise ConnectionResetError("closed by the other end")
        left = left[got:]
    return data


def close(connection: socket.socket) -> None:
    """Close it, and wake a thread that reads from it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
