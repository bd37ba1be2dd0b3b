"""Stores: a few values, by key, that all processes of a group see; by them the processes find each
other.

    store = TCPStore("localhost", 29500, world_size, is_master=rank == 0)
    store.set("key", "value")
    store.get("key")                       # b"value", waiting until some process has set it
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import struct
import threading
import time
from datetime import timedelta
from typing import Any, Dict, List, Optional, Sequence, Union

from treadle.distributed import _wire
from treadle.distributed.errors import DistNetworkError, DistStoreError

DEFAULT_TIMEOUT = timedelta(seconds=300)

_POLL = 0.01  # seconds between looks at a file


class _Table:
    """The values, and what can be done with them. None is the answer where a key is not there."""

    def __init__(self) -> None:
        self.values: Dict[str, bytes] = {}

    def apply(self, action: str, key: str, value: bytes) -> Optional[bytes]:
        values = self.values
        if action == "set":
            values[key] = value
            return b""
        if action == "add":
            values[key] = str(int(values.get(key, b"0")) + int(value)).encode()
            return values[key]
        if action == "delete":
            return str(int(values.pop(key, None) is not None)).encode()
        if action == "count":
            return str(len(values)).encode()
        if action == "check":
            return str(int(key in values)).encode()
        return values.get(key)  # "get"


class Store:
    """The functions of all stores."""

    def __init__(self, timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        self._timeout = timeout

    @property
    def timeout(self) -> timedelta:
        """How long get() and wait() wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Choose that time."""
        self._timeout = timeout

    def _ask(self, action: str, key: str, value: bytes, seconds: float) -> Optional[bytes]:
        raise NotImplementedError

    def _now(self, action: str, key: str = "", value: bytes = b"") -> bytes:
        answer = self._ask(action, key, value, 0.0)
        if answer is None:
            raise DistStoreError(f"{action}: expected an answer of the store, got none")
        return answer

    def set(self, key: str, value: Union[str, bytes]) -> None:
        """Set the value of a key."""
        self._now("set", key, value.encode() if isinstance(value, str) else bytes(value))

    def get(self, key: str) -> bytes:
        """The value of a key, as soon as it is there. DistStoreError if that takes too long."""
        return self._get(key, self._timeout)

    def _get(self, key: str, timeout: timedelta) -> bytes:
        answer = self._ask("get", key, b"", timeout.total_seconds())
        if answer is None:
            raise DistStoreError(
                f"get: expected a value for {key!r} within {timeout.total_seconds():g} s, got none"
            )
        return answer

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which begins as 0; returns the sum."""
        return int(self._now("add", key, str(amount).encode()))

    def wait(self, keys: Sequence[str], timeout: Optional[timedelta] = None) -> None:
        """Wait until all keys are there. DistStoreError if that takes too long."""
        for key in keys:
            self._get(key, self._timeout if timeout is None else timeout)

    def check(self, keys: List[str]) -> bool:
        """Whether all keys are there."""
        return all(self._now("check", key) == b"1" for key in keys)

    def delete_key(self, key: str) -> bool:
        """Remove a key; returns whether it was there."""
        return self._now("delete", key) == b"1"

    def num_keys(self) -> int:
        """How many keys there are."""
        return int(self._now("count"))

    def close(self) -> None:
        """Let go of what the store holds open."""

    def end(self) -> None:
        """Close it, and remove what it leaves behind, when no process needs it any more."""
        self.close()


class HashStore(Store):
    """A store within one process."""

    def __init__(self) -> None:
        super().__init__()
        self._table = _Table()
        self._changed = threading.Condition()

    def _ask(self, action: str, key: str, value: bytes, seconds: float) -> Optional[bytes]:
        return _answer(self._table, self._changed, action, key, value, seconds)


def _answer(
    table: _Table,
    changed: threading.Condition,
    action: str,
    key: str,
    value: bytes,
    seconds: float,
) -> Optional[bytes]:
    with changed:
        if action == "get":
            changed.wait_for(lambda: key in table.values, seconds)
        answer = table.apply(action, key, value)
        changed.notify_all()
        return answer


class FileStore(Store):
    """A store in a file that all processes can open; each change is a line at its end."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = str(file_name)

    def _ask(self, action: str, key: str, value: bytes, seconds: float) -> Optional[bytes]:
        deadline = time.monotonic() + seconds
        while True:
            answer = self._once(action, key, value)
            if answer is not None or time.monotonic() >= deadline:
                return answer
            time.sleep(_POLL)

    def _once(self, action: str, key: str, value: bytes) -> Optional[bytes]:
        with open(self.path, "a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            table = _Table()
            for line in file:
                past, past_key, past_value = json.loads(line)
                table.apply(past, past_key, past_value.encode("latin-1"))
            if action in ("set", "add", "delete"):
                file.write(json.dumps([action, key, value.decode("latin-1")]) + "\n")
            return table.apply(action, key, value)

    def end(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


_REQUEST = struct.Struct("!HIId")  # lengths of the action, the key and the value; seconds
_REPLY = struct.Struct("!?I")  # whether there is an answer; its length


class _Server:
    """Answers the clients of a TCPStore, each in a thread."""

    def __init__(self, host: str, port: int) -> None:
        try:
            self._listener = _wire.listen(host, port)
        except OSError as error:
            raise DistNetworkError(
                f"TCPStore: expected to listen at {host}:{port}, got {error}"
            ) from None
        self.port: int = self._listener.getsockname()[1]
        self._table = _Table()
        self._changed = threading.Condition()
        self._connections: List[socket.socket] = []
        threading.Thread(target=self._accept, name="TCPStore", daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                connection, _ = self._listener.accept()
                _wire.prepare(connection)
                self._connections.append(connection)
                serve = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                serve.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            while True:
                *lengths, seconds = _REQUEST.unpack(_wire.read(connection, _REQUEST.size))
                action, key, value = (bytes(_wire.read(connection, n)) for n in lengths)
                answer = _answer(
                    self._table, self._changed, action.decode(), key.decode(), value, seconds
                )
                reply = _REPLY.pack(answer is not None, len(answer or b""))
                connection.sendall(reply + (answer or b""))

    def close(self) -> None:
        for connection in [self._listener, *self._connections]:
            _wire.close(connection)


class TCPStore(Store):
    """A store that one process, the master, holds, and that the others reach at its address. With
    port 0 the master takes one that is free, told by `port`.
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
        master_listen_fd: Any = None,
        use_libuv: bool = True,
    ) -> None:
        if master_listen_fd is not None:
            raise NotImplementedError(
                f"TCPStore: expected master_listen_fd = None, got {master_listen_fd}: the store "
                "opens its port itself"
            )
        super().__init__(timeout)
        self._server = _Server(host_name, port) if is_master else None
        self.host = host_name
        self.port = self._server.port if self._server else port
        self._lock = threading.Lock()
        deadline = time.monotonic() + timeout.total_seconds()
        self._connection = _wire.connect((host_name, self.port), deadline)
        if wait_for_workers and world_size is not None:
            self.add("worker", 1)
            while int(self.get("worker")) < world_size:
                if time.monotonic() >= deadline:
                    raise DistStoreError(
                        f"TCPStore: expected {world_size} processes, got "
                        f"{int(self.get('worker'))} within {timeout.total_seconds():g} s"
                    )
                time.sleep(_POLL)

    @property
    def local_host(self) -> str:
        """The address of this machine on the way to the master."""
        return str(self._connection.getsockname()[0])

    def _ask(self, action: str, key: str, value: bytes, seconds: float) -> Optional[bytes]:
        fields = (action.encode(), key.encode(), value)
        request = _REQUEST.pack(*map(len, fields), seconds)
        try:
            with self._lock:
                self._connection.sendall(b"".join([request, *fields]))
                is_there, length = _REPLY.unpack(_wire.read(self._connection, _REPLY.size))
                answer = bytes(_wire.read(self._connection, length))
        except OSError as error:
            raise DistStoreError(
                f"{action}: expected an answer of the store at {self.host}:{self.port}, got {error}"
            ) from None
        return answer if is_there else None

    def close(self) -> None:
        _wire.close(self._connection)
        if self._server is not None:
            self._server.close()


class PrefixStore(Store):
    """The keys of another store that begin with a prefix."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__(store.timeout)
        self.prefix = prefix
        self.underlying_store = store

    def _ask(self, action: str, key: str, value: bytes, seconds: float) -> Optional[bytes]:
        return self.underlying_store._ask(action, f"{self.prefix}/{key}", value, seconds)
