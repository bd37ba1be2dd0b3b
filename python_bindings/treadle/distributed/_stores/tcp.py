"""TCPStore: a store that one process holds, and that the others reach at its address.

Each call takes a connection to itself, from those that are free, so that a call that waits holds up
no other one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import os
import secrets
import socket
import struct
import threading
import time
from datetime import timedelta
from typing import Dict, List, Optional, Tuple

from treadle.distributed import _wire
from treadle.distributed._stores import protocol
from treadle.distributed._stores.base import DEFAULT_TIMEOUT, Store
from treadle.distributed._stores.server import Server
from treadle.distributed._stores.table import Answer, Request
from treadle.distributed.errors import DistNetworkError, DistStoreError

_PAUSE = 0.05  # seconds between attempts to connect
_GRACE = 5.0  # seconds for the way of a reply that says that the time is over


def _addresses(host: str, port: int) -> List[Tuple[int, tuple]]:
    """The addresses to listen at, those of IPv4 first: that of the host, and no other.

    A name of this machine may stand for its loopback address alone (as in Debian's /etc/hosts),
    where other machines find another address by it. The server then listens at all addresses.
    TREADLE_STORE_LISTEN names another address to listen at, such as 0.0.0.0.
    """
    host = os.environ.get("TREADLE_STORE_LISTEN") or host
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    made: List[Tuple[int, tuple]] = [(family, address) for family, _, _, _, address in found]
    made = list(dict.fromkeys(made))
    made.sort(key=lambda each: each[0] != socket.AF_INET)
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return made
    is_local = host == "localhost" or host.endswith(".localhost")
    if not is_local and all(ipaddress.ip_address(a[0]).is_loopback for _, a in made):
        return [(socket.AF_INET, ("0.0.0.0", port))]
    return made


def _listen(host: str, port: int) -> List[socket.socket]:
    listeners: List[socket.socket] = []
    for family, address in _addresses(host, port):
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            taken = listeners[0].getsockname()[1] if listeners else port
            listener.bind((address[0], taken, *address[2:]))
            listener.listen(4096)
        except OSError:
            listener.close()
            if not listeners:
                raise
            continue  # the first address is enough
        listeners.append(listener)
    return listeners


def _serve(host: str, port: int, fd: Optional[int], secret: bytes) -> Server:
    if fd is not None:
        try:
            return Server([socket.socket(fileno=fd)], secret)
        except OSError as error:
            raise ValueError(
                f"TCPStore: expected master_listen_fd of a listening socket, got {fd} ({error})"
            ) from None
    try:
        return Server(_listen(host, port), secret)
    except OSError as error:
        raise DistNetworkError(
            f"TCPStore: expected to listen at {host}:{port}, got {error}"
        ) from None


def _is_agents(host: str, port: int) -> bool:
    """Whether the agent that began this process serves the store at an address."""
    agent = (os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT"))
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True" and agent == (host, str(port))


class _Pool:
    """The connections of this process to a server."""

    def __init__(self, host: str, port: int, secret: bytes) -> None:
        self.host = host
        self.port = port
        self._secret = secret
        self._free: List[socket.socket] = []
        self._busy: List[socket.socket] = []
        self._owner = os.getpid()
        self._changing = threading.Lock()
        self.is_closed = False

    def take(self, deadline: float) -> socket.socket:
        """A connection for one call."""
        if os.getpid() != self._owner:  # a copy made by fork(): those connections are the parent's
            self._free, self._busy, self._owner = [], [], os.getpid()
            self._changing = threading.Lock()
        with self._changing:
            connection = self._free.pop() if self._free else None
        if connection is None:
            connection = self._connect(deadline)
        with self._changing:
            self._busy.append(connection)
        return connection

    def give_back(self, connection: socket.socket) -> None:
        """Keep it for the next call."""
        with self._changing:
            self._busy.remove(connection)
            self._free.append(connection)

    def drop(self, connection: socket.socket) -> None:
        """Close it: a reply may still come over it."""
        with self._changing:
            if connection in self._busy:
                self._busy.remove(connection)
        connection.close()

    def close(self) -> None:
        """Close all, and end the calls that wait."""
        self.is_closed = True
        with self._changing:
            connections = self._free + self._busy
            self._free = []
        if os.getpid() == self._owner:
            for connection in connections:
                _wire.close(connection)

    def _connect(self, deadline: float) -> socket.socket:
        """A connection whose other end knows the secret, tried until the deadline."""
        while True:
            left = max(deadline - time.monotonic(), 0.001)
            try:
                if self.is_closed:
                    raise DistStoreError(
                        f"TCPStore: expected an open store, got one that is closed, at "
                        f"{self.host}:{self.port}"
                    )
                connection = socket.create_connection((self.host, self.port), timeout=left)
            except OSError as error:
                if left < _PAUSE or isinstance(error, socket.timeout):
                    raise self._unreachable(error) from None
                time.sleep(_PAUSE)
                continue
            try:
                if connection.getsockname() == connection.getpeername():
                    # The system gave it the very port that nobody listens at yet.
                    raise ConnectionRefusedError("connected to itself")
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                self._greet(connection)
                return connection
            except OSError as error:
                connection.close()
                if deadline - time.monotonic() < _PAUSE:
                    raise self._unreachable(error) from None
                time.sleep(_PAUSE)
            except BaseException:
                connection.close()
                raise

    def _unreachable(self, error: OSError) -> DistNetworkError:
        return DistNetworkError(
            f"connect: expected a process that listens at {self.host}:{self.port}, got none in "
            f"time ({error})"
        )

    def _greet(self, connection: socket.socket) -> None:
        mine = secrets.token_bytes(protocol.NONCE)
        connection.sendall(protocol.frame(protocol.MAGIC + mine))
        said = _read_frame(connection, protocol.MAX_GREETING)
        where = f"TCPStore: expected the store at {self.host}:{self.port}"
        if len(said) <= protocol.NONCE:
            raise DistNetworkError(f"{where}, got a server of another kind")
        theirs, shown = said[1 : 1 + protocol.NONCE], said[1 + protocol.NONCE :]
        if said[0] and not self._secret:
            raise DistNetworkError(
                f"{where} to ask for no secret, but it does; give that of the other processes in "
                "TREADLE_STORE_SECRET"
            )
        expected = protocol.proof(self._secret, b"server", mine, theirs)
        if not hmac.compare_digest(expected, shown):
            has = "another one" if said[0] else "none"
            raise DistNetworkError(
                f"{where} to have the secret of TREADLE_STORE_SECRET, but it has {has}"
            )
        connection.sendall(protocol.frame(protocol.proof(self._secret, b"client", mine, theirs)))
        if _read_frame(connection, protocol.MAX_GREETING) != protocol.WELCOME:
            raise DistNetworkError(f"{where}, got a server of another kind")


def _read_frame(connection: socket.socket, limit: int) -> bytes:
    (length,) = protocol.LENGTH.unpack(_wire.read(connection, protocol.LENGTH.size))
    if length > limit:
        raise ConnectionError(f"expected a reply of at most {limit} bytes, got {length}")
    return bytes(_wire.read(connection, length))


class _Shared:
    """A server that several stores of this process hold."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.holders = 0


_servers: Dict[int, _Shared] = {}  # of multi_tenant stores, by port
_servers_change = threading.Lock()


class TCPStore(Store):
    """A store that one process, the master, holds, and that the others reach at its address. With
    port 0 the master takes one that is free, told by `port`. It listens at the address that is
    given, and at no other.

    With `world_size` and `wait_for_workers` this waits until so many processes are there. A second
    `multi_tenant` master of one process at the same port shares the first one's server.
    `master_listen_fd` is a listening socket for the server. With a `secret`, by default that of
    TREADLE_STORE_SECRET, the processes and the server prove to each other that they know it.

    DistNetworkError if the server cannot listen or is not reached in time, or has another secret;
    DistStoreError if not all processes come in time.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: Optional[int] = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: Optional[int] = None,
        use_libuv: bool = True,
        secret: Optional[str] = None,
    ) -> None:
        super().__init__(timeout)
        if not 0 <= port < 1 << 16:
            raise ValueError(f"TCPStore: expected port in [0, 65535], got {port}")
        if port == 0 and not is_master:
            raise ValueError("TCPStore: expected the port of the master, got port = 0")
        self.libuvBackend = use_libuv  # the same server by any name
        self.host = host_name
        self._secret = protocol.secret_of(secret)
        self._server: Optional[Server] = None
        self._shared: Optional[_Shared] = None
        if is_master:
            try:
                self._begin_to_serve(port, multi_tenant, master_listen_fd)
            except DistNetworkError:
                if not _is_agents(host_name, port):
                    raise
        self.port = self._server.port if self._server else port
        self._pool = _Pool(host_name, self.port, self._secret)
        self._is_clone = False
        deadline = time.monotonic() + timeout.total_seconds()
        try:
            self._pool.give_back(self._pool.take(deadline))
            self.add("init/", 1)
            if wait_for_workers and world_size is not None and world_size > 0:
                self._wait_for_workers(world_size, deadline)
        except BaseException:
            self.close()
            raise

    def _begin_to_serve(self, port: int, multi_tenant: bool, fd: Optional[int]) -> None:
        if not multi_tenant:
            self._server = _serve(self.host, port, fd, self._secret)
            return
        with _servers_change:
            shared = _servers.get(port)
            if shared is None or shared.server._owner != os.getpid():
                shared = _Shared(_serve(self.host, port, fd, self._secret))
                _servers[shared.server.port] = shared
            shared.holders += 1
        self._shared, self._server = shared, shared.server

    def _wait_for_workers(self, world_size: int, deadline: float) -> None:
        wanted = Request("reach", ("init/",), (str(world_size).encode(),))
        if self._ask(wanted, max(0.0, deadline - time.monotonic())) is None:
            raise DistStoreError(
                f"TCPStore: expected {world_size} processes at {self.host}:{self.port}, got "
                f"{int(self.get('init/'))} within {self._timeout.total_seconds():g} s"
            )

    @property
    def local_host(self) -> str:
        """The address of this machine on the way to the master."""
        connection = self._pool.take(time.monotonic() + self._timeout.total_seconds())
        try:
            return str(connection.getsockname()[0])
        finally:
            self._pool.give_back(connection)

    def _place(self) -> str:
        return f"the store at {self.host}:{self.port}"

    def _ask(self, request: Request, seconds: float) -> Answer:
        content = protocol.request_bytes(request, seconds)
        if len(content) > protocol.MAX_FRAME:
            raise ValueError(
                f"{request.action}: expected keys and values of at most {protocol.MAX_FRAME} "
                f"bytes, got {len(content)}"
            )
        start = time.monotonic()
        limit = start + self._timeout.total_seconds()
        connection = self._pool.take(limit)
        try:
            # A server that is alive says itself that the time is over.
            connection.settimeout(
                seconds + min(_GRACE, self._timeout.total_seconds())
                if seconds
                else max(limit - time.monotonic(), 0.001)
            )
            connection.sendall(protocol.frame(content))
            status, parts = protocol.reply_of(_read_frame(connection, protocol.MAX_FRAME))
        except (OSError, struct.error, ValueError, IndexError) as error:
            self._pool.drop(connection)
            what = error
            if isinstance(error, socket.timeout):
                what = TimeoutError(f"nothing within {time.monotonic() - start:.3g} s")
            raise DistNetworkError(
                f"{request.action}: expected an answer of {self._place()}, got {what}; its "
                "process has ended or is stopped"
            ) from None
        except BaseException:
            self._pool.drop(connection)
            raise
        self._pool.give_back(connection)
        if status == protocol.REFUSED:
            raise ValueError(parts[0].decode())
        return parts if status == protocol.ANSWERED else None

    def list_keys(self) -> List[str]:
        """The keys that have values."""
        return [key for key in super().list_keys() if key != "init/"]

    def clone(self) -> TCPStore:
        """Another store at the same server, with connections and a timeout of its own."""
        made = TCPStore.__new__(TCPStore)
        made.__dict__.update(self.__dict__)
        made._pool = _Pool(self.host, self.port, self._secret)
        made._server = made._shared = None
        return made

    def close(self) -> None:
        """Close the connections; the master's store also ends the server."""
        self._pool.close()
        server, self._server = self._server, None
        shared, self._shared = self._shared, None
        if shared is not None:
            with _servers_change:
                shared.holders -= 1
                if shared.holders:
                    return
                if _servers.get(shared.server.port) is shared:
                    del _servers[shared.server.port]
        if server is not None:
            server.close()

    def __del__(self) -> None:
        if "_pool" in self.__dict__:
            with contextlib.suppress(Exception):
                self.close()

    def __repr__(self) -> str:
        role = "server and client" if self._server else "client"
        return f"TCPStore({self.host}:{self.port}, {role})"


__all__ = ["TCPStore"]
