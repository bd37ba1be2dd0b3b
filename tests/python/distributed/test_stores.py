"""The stores: what they answer, how long they wait, and what strangers at their port can do."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import fcntl
import os
import resource
import socket
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any, Callable, Iterator, List, Tuple

import pytest

import child_processes
import treadle.distributed as dist
from treadle.distributed._stores import protocol, server

LONG = timedelta(seconds=20)
SHORT = timedelta(seconds=0.05)


def master(**more: Any) -> dist.TCPStore:
    return dist.TCPStore("127.0.0.1", 0, None, True, LONG, **more)


def client(of: dist.TCPStore, **more: Any) -> dist.TCPStore:
    return dist.TCPStore("127.0.0.1", of.port, None, False, LONG, **more)


class Own(dist.Store):
    """A store as programs write them."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict = {}

    def set(self, key: str, value: Any) -> None:
        self.values[key] = value

    def get(self, key: str) -> bytes:
        return self.values[key]

    def wait(self, keys: Any, timeout: Any = None) -> None:
        if not self.check(keys):
            raise dist.DistStoreError("late")

    def check(self, keys: Any) -> bool:
        return all(key in self.values for key in keys)

    def add(self, key: str, amount: int) -> int:
        self.values[key] = str(int(self.values.get(key, 0)) + amount).encode()
        return int(self.values[key])


@pytest.fixture(params=["hash", "file", "tcp", "prefix of tcp"])
def store(request: Any, tmp_path: Path) -> Iterator[dist.Store]:
    made: dist.Store
    if request.param == "hash":
        made = dist.HashStore()
    elif request.param == "file":
        made = dist.FileStore(str(tmp_path / "store"))
    else:
        made = master()
        if "prefix" in request.param:
            made = dist.PrefixStore("p", made)
    yield made
    made.close()


def raised(kind: type, call: Callable) -> str:
    with pytest.raises(kind) as found:
        call()
    return str(found.value)


def test_what_stores_answer(store: dist.Store) -> None:
    store.set_timeout(SHORT)
    assert store.timeout == SHORT
    store.set("a", "x")
    store.set("b", b"\x00\xff\n")
    assert store.get("a") == b"x" and store.get("b") == b"\x00\xff\n"
    assert store.add("sum", 3) == 3 and store.add("sum", -1) == 2 and store.get("sum") == b"2"
    assert raised(ValueError, lambda: store.add("b", 1)).startswith(
        "add: expected a number as the value of "
    )
    # compare_set() as PyTorch has it, also where the key is not there.
    assert [store.compare_set("a", "x", "y"), store.compare_set("a", "x", "z")] == [b"y", b"y"]
    assert store.compare_set("new", "x", "z") == b"x" and not store.check(["new"])
    assert store.compare_set("new", "", "z") == b"z"
    store.append("ap", "1")
    store.append("ap", b"2")
    assert store.get("ap") == b"12"
    store.multi_set(["m", "n"], ["1", b"2"])
    assert store.multi_get(["m", "n"]) == [b"1", b"2"] and store.multi_get([]) == []
    store.queue_push("queue", "v")
    store.queue_push("queue", "w")
    assert store.queue_len("queue") == 2 and store.check(["queue"])
    assert store.queue_pop("queue") == b"v" and store.queue_pop("queue", block=False) == b"w"
    assert store.queue_len("queue") == 0 and store.queue_len("other") == 0
    assert sorted(store.list_keys()) == ["a", "ap", "b", "m", "n", "new", "sum"]
    assert store.num_keys() - len(store.list_keys()) == isinstance(store, dist.TCPStore)
    assert store.check([]) and store.check(["a", "b"]) and not store.check(["a", "none"])
    assert store.delete_key("a") and not store.delete_key("a") and not store.check(["a"])
    assert store.has_extended_api() and store.clone().get("b") == b"\x00\xff\n"
    store.wait([])
    store.wait(["b", "m"], SHORT)
    store.barrier("meet", 1)


def test_messages_of_stores(store: dist.Store, tmp_path: Path) -> None:
    store.set_timeout(SHORT)
    store.set("there", "")
    place = "the HashStore"
    if isinstance(store, dist.FileStore):
        place = f"the store in {tmp_path / 'store'}"
    elif not isinstance(store, dist.HashStore):
        inner = store.underlying_store if isinstance(store, dist.PrefixStore) else store
        place = f"the store at 127.0.0.1:{inner.port}"
    late = f"expected a value for 'none' in {place} within 0.05 s, got none"
    assert raised(dist.DistStoreError, lambda: store.get("none")) == f"get: {late}"
    for call in (
        lambda: store.wait(["there", "none"], SHORT),
        lambda: store.wait(["none"]),
    ):
        assert raised(dist.DistStoreError, call) == f"wait: {late}"
    call = lambda: store.multi_get(["there", "none"])
    assert raised(dist.DistStoreError, call) == f"multi_get: {late}"
    assert raised(dist.DistStoreError, lambda: store.multi_set(["a"], ["1", "2"])) == (
        "multi_set: expected as many values as keys, got 1 keys and 2 values"
    )
    assert raised(dist.DistStoreError, lambda: store.queue_pop("q")) == (
        f"queue_pop: expected a value in the queue 'q' in {place} within 0.05 s, got none"
    )
    assert raised(dist.QueueEmptyError, lambda: store.queue_pop("q", block=False)) == (
        f"queue_pop: expected a value in the queue 'q' of {place}, got an empty queue"
    )
    assert raised(dist.DistStoreError, lambda: store.barrier("b", 2)) == (
        f"barrier: expected 2 processes at the barrier 'b' in {place} within 0.05 s, got none"
    )


def test_what_is_no_key_or_value(store: dist.Store) -> None:
    """A number as a value is not so many zeros, a text is no list of keys."""
    cases: List[Tuple[str, Callable[[], Any]]] = [
        ("set: expected a str or bytes as value, got int", lambda: store.set("a", 5)),
        ("append: expected a str or bytes as value, got NoneType", lambda: store.append("a", None)),
        (
            "multi_set: expected a str or bytes as value, got int",
            lambda: store.multi_set(["a"], [1]),
        ),
        (
            "queue_push: expected a str or bytes as value, got list",
            lambda: store.queue_push("a", []),
        ),
        (
            "compare_set: expected a str or bytes as value, got int",
            lambda: store.compare_set("a", "", 1),
        ),
        ("set: expected a str as key, got int", lambda: store.set(1, "a")),
        ("get: expected a str as key, got bytes", lambda: store.get(b"a")),
        ("queue_pop: expected a str as key, got int", lambda: store.queue_pop(1)),
        ("delete_key: expected a str as key, got int", lambda: store.delete_key(1)),
        ("wait: expected a list of keys, got 'ab'", lambda: store.wait("ab")),
        ("check: expected a list of keys, got 'ab'", lambda: store.check("ab")),
        ("multi_get: expected a list of keys, got 'ab'", lambda: store.multi_get("ab")),
    ]
    for text, call in cases:
        with pytest.raises(TypeError) as raised:
            call()
        assert str(raised.value) == text
    assert store.list_keys() == []


def test_waiting_holds_up_nobody(store: dist.Store) -> None:
    found: List[Any] = []
    calls: List[Callable] = [
        lambda: found.append(store.get("late")),
        lambda: found.append(store.multi_get(["late", "later"])),
        lambda: found.append(store.queue_pop("queue")),
        lambda: store.barrier("meet", 2, LONG),
    ]
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    store.set("late", "1")
    store.set("later", "2")
    store.queue_push("queue", "3")
    store.barrier("meet", 2, LONG)
    for thread in threads:
        thread.join()
    assert sorted(found, key=str) == [[b"1", b"2"], b"1", b"3"] and not store.check(["queue"])


def test_a_store_of_a_program() -> None:
    own = Own()
    store = dist.PrefixStore("a", dist.PrefixStore("b", own))
    store.set("key", "1")
    assert own.values == {"b/a/key": b"1"} and store.get("key") == b"1"
    assert store.add("key", 2) == 3 and store.check(["key"])
    assert store._underlying_non_prefix_store is own
    assert raised(NotImplementedError, lambda: store.queue_len("q")) == (
        "queue_len: expected Own to define it, got Store's own"
    )


def test_a_file_that_a_process_left_in_the_middle(tmp_path: Path) -> None:
    first, second = (dist.FileStore(str(tmp_path / "store")) for _ in range(2))
    first.set("a", "1")
    with open(first.path, "ab") as file:
        file.write(b'["set", ["b"], ["')
    assert second.get("a") == b"1" and not second.check(["b"])
    second.set("c", "3")
    assert first.multi_get(["a", "c"]) == [b"1", b"3"]


def test_servers() -> None:
    first = master(multi_tenant=True)
    second = dist.TCPStore("127.0.0.1", first.port, None, True, LONG, multi_tenant=True)
    second.set("a", "1")
    assert first.get("a") == b"1"
    first.close()
    assert second.get("a") == b"1"  # the server is there until the last one has closed it
    taken = raised(
        dist.DistNetworkError, lambda: dist.TCPStore("127.0.0.1", second.port, None, True)
    )
    assert taken.startswith(f"TCPStore: expected to listen at 127.0.0.1:{second.port}, got ")
    addresses = [each.getsockname()[0] for each in second._server._listeners]  # type: ignore[union-attr]
    assert addresses == ["127.0.0.1"]
    port = second.port
    second.close()
    soon = timedelta(seconds=0.2)
    assert raised(
        dist.DistNetworkError, lambda: dist.TCPStore("127.0.0.1", port, timeout=soon)
    ).startswith(f"connect: expected a process that listens at 127.0.0.1:{port}, got none in time")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        fd = os.dup(listener.fileno())
        third = dist.TCPStore("127.0.0.1", port, None, True, LONG, master_listen_fd=fd)
        third.set("a", "1")
        fourth = client(third)
        third.close()
    assert raised(dist.DistNetworkError, lambda: fourth.get("a")) == (
        f"get: expected an answer of the store at 127.0.0.1:{port}, got closed by the other end; "
        "its process has ended or is stopped"
    )
    assert raised(
        dist.DistStoreError, lambda: dist.TCPStore("127.0.0.1", 0, 2, True, timedelta(seconds=0.5))
    ).endswith(", got 1 within 0.5 s")
    for arguments, message in (
        (("127.0.0.1", 1 << 16), "TCPStore: expected port in [0, 65535], got 65536"),
        (("127.0.0.1", 0), "TCPStore: expected the port of the master, got port = 0"),
    ):
        assert raised(ValueError, lambda: dist.TCPStore(*arguments)) == message


def test_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_STORE_SECRET", "hush")
    one = master()
    assert client(one).add("a", 1) == 1
    where = f"TCPStore: expected the store at 127.0.0.1:{one.port} to"
    has = f"{where} have the secret of TREADLE_STORE_SECRET, but it has"
    assert raised(dist.DistNetworkError, lambda: client(one, secret="x")) == f"{has} another one"
    assert raised(dist.DistNetworkError, lambda: client(one, secret="")) == (
        f"{where} ask for no secret, but it does; give that of the other processes in "
        "TREADLE_STORE_SECRET"
    )
    # A stranger that skips the proof is not answered.
    with socket.create_connection(("127.0.0.1", one.port)) as stranger:
        stranger.sendall(protocol.frame(protocol.MAGIC + bytes(protocol.NONCE)))
        stranger.sendall(protocol.frame(bytes(32)) + protocol.frame(b"request"))
        said = b""
        while new := stranger.recv(1000):
            said += new
        assert len(said) == 4 + 1 + protocol.NONCE + 32
    one.close()
    two = master(secret="")
    text = raised(dist.DistNetworkError, lambda: client(two))
    assert text.endswith("to have the secret of TREADLE_STORE_SECRET, but it has none")
    two.close()


# ---- Strangers ----


def test_strangers_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a rank waits, others send garbage, lengths of 4 GiB, half a greeting, and open
    connections: the rank, and one that comes, are served."""
    monkeypatch.setattr(server, "GREETING_SECONDS", 0.2)
    one = master()
    address = ("127.0.0.1", one.port)
    found: List[bytes] = []
    waits = threading.Thread(target=lambda: found.append(one.get("late")))
    waits.start()
    garbage: Tuple[bytes, ...] = (
        os.urandom(100_000),
        b"\xff" * 4,
        b"GET / HTTP/1.1\r\n\r\n",
        protocol.frame(b"x" * 48),
        protocol.frame(protocol.MAGIC + bytes(32)) * 3,
    )
    for data in garbage:
        with socket.create_connection(address) as stranger:
            stranger.settimeout(10)
            try:
                stranger.sendall(data)
                while stranger.recv(1 << 16):
                    pass
            except ConnectionError:
                pass
    count = min(3000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2 - 300)
    strangers = [socket.create_connection(address) for _ in range(count)]
    half = socket.create_connection(address)
    half.sendall(protocol.frame(protocol.MAGIC + bytes(32))[:20])
    assert one.add("n", 1) == 1
    newcomer = client(one)
    assert newcomer.add("n", 1) == 2
    half.settimeout(10)
    assert half.recv(1) == b""  # it did not say hello in time
    # A client that says hello and then speaks another language is closed.
    rude = newcomer._pool._free[-1]
    rude.sendall(protocol.frame(b"\xff" * 30))
    rude.settimeout(10)
    assert rude.recv(1) == b""
    one.set("late", "1")
    waits.join()
    assert found == [b"1"]
    for stranger in (*strangers, half):
        stranger.close()
    one.close()


def _serve_with_few_files() -> None:
    one = master()
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    child_processes.say(one.port)
    child_processes.hear()


def test_a_server_without_free_files() -> None:
    process = child_processes.Child(_serve_with_few_files)
    port = process.hear()
    strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(200)]
    made = dist.TCPStore("127.0.0.1", port, None, False, LONG)
    assert made.add("n", 1) == 1
    for stranger in strangers:
        stranger.close()
    process.say("end")
    assert child_processes.results([process]) == [None]


def test_a_file_that_another_keeps_locked(tmp_path: Path) -> None:
    path = tmp_path / "store"
    store = dist.FileStore(str(path))
    store.set("a", "1")
    store.set_timeout(SHORT)
    with open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for call in (lambda: store.set("a", "2"), lambda: store.get("a")):
            assert raised(dist.DistStoreError, call) == (
                f"expected the store in {path} to be free within 0.05 s, got one that another "
                "process or thread keeps locked"
            )
    store.set("a", "3")
    # A child of a fork that comes in the middle has the file open, and locked, as its parent.
    with store._locked(1.0) as file:
        kept = os.dup(file.fileno())
    assert dist.FileStore(str(path)).get("a") == b"3"
    os.close(kept)


def test_a_file_that_was_removed_does_not_come_again(tmp_path: Path) -> None:
    path = tmp_path / "store"
    first, second = dist.FileStore(str(path)), dist.FileStore(str(path))
    first.set("key", "value")
    assert second.get("key") == first.clone().get("key") == b"value"
    unused = first.clone()
    first.end()
    for store in (second, unused):
        assert raised(dist.DistStoreError, lambda: store.check(["key"])) == (
            f"expected the store in {path}, got none: it has ended"
        )
    assert not path.exists()
