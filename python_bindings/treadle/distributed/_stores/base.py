"""The functions of all stores, made of requests; and the stores without files or sockets."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from treadle.distributed._stores.table import Answer, Request, Table
from treadle.distributed.errors import DistStoreError, QueueEmptyError

DEFAULT_TIMEOUT = timedelta(seconds=300)
Value = Union[str, bytes]


def _bytes(function: str, value: Value) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{function}: expected a str or bytes as value, got {type(value).__name__}")
    return bytes(value)


def _keys(function: str, keys: Sequence[str]) -> Tuple[str, ...]:
    if isinstance(keys, (str, bytes)):
        raise TypeError(f"{function}: expected a list of keys, got {keys!r}")
    for key in keys:
        if not isinstance(key, str):
            raise TypeError(f"{function}: expected a str as key, got {type(key).__name__}")
    return tuple(keys)


class Store:
    """A few values, by key, that all processes of a group see. A value is bytes; a str given as a
    value is its UTF-8. A class of a program's own that derives from Store defines at least set(),
    get(), add(), wait() and check()."""

    def __init__(self, timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        self._timeout = timeout

    @property
    def timeout(self) -> timedelta:
        """How long get(), wait() and the others wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Choose that time."""
        self._timeout = timeout

    # ---- What each kind of store has ----

    def _ask(self, request: Request, seconds: float) -> Answer:
        """The answer, waited for at most so many seconds; None if it does not come by then."""
        method, call = _BY_FUNCTIONS[request.action]
        if getattr(type(self), method) is getattr(Store, method):
            raise NotImplementedError(
                f"{method}: expected {type(self).__name__} to define it, got Store's own"
            )
        return call(self, request, timedelta(seconds=seconds))

    def _place(self) -> str:
        """The store, as messages name it."""
        return f"the {type(self).__name__}"

    def clone(self) -> Store:
        """Another store over the same content, for another thread: neither waits for the other."""
        return self

    def close(self) -> None:
        """Let go of what the store holds open."""

    def end(self) -> None:
        """Close it, and remove what it leaves behind, when no process needs it any more."""
        self.close()

    # ---- Functions ----

    def _now(self, action: str, keys: Sequence[str], *values: bytes) -> List[bytes]:
        function = _BY_FUNCTIONS[action][0]
        answer = self._ask(Request(action, _keys(function, keys), values), 0.0)
        if answer is None:
            raise DistStoreError(f"{function}: expected an answer of {self._place()}, got none")
        return answer

    def _in_time(
        self,
        function: str,
        request: Request,
        timeout: Optional[timedelta],
        what: str = "",
    ) -> List[bytes]:
        limit = (self.timeout if timeout is None else timeout).total_seconds()
        _keys(function, request.keys)
        answer = self._ask(request, limit)
        if answer is None:
            missing = request.keys
            if len(missing) > 1:
                missing = tuple(k for k in missing if not self.check([k])) or missing
            what = what or "a value for " + ", ".join(map(repr, missing))
            raise DistStoreError(
                f"{function}: expected {what} in {self._place()} within {limit:g} s, got none"
            )
        return answer

    def set(self, key: str, value: Value, /) -> None:
        """Set the value of a key."""
        self._now("set", [key], _bytes("set", value))

    def get(self, key: str, /) -> bytes:
        """The value of a key, as soon as it is there. DistStoreError if that takes longer than the
        timeout."""
        return self._in_time("get", Request("get", (key,)), None)[0]

    def add(self, key: str, amount: int, /) -> int:
        """Add to a number, which begins as 0; returns the sum. ValueError if the value is no
        number."""
        return int(self._now("add", [key], str(int(amount)).encode())[0])

    def wait(self, keys: Sequence[str], timeout: Optional[timedelta] = None, /) -> None:
        """Wait until all keys are there. DistStoreError if that takes longer than `timeout`, by
        default the store's."""
        if keys:
            self._in_time("wait", Request("wait", _keys("wait", keys)), timeout)

    def check(self, keys: Sequence[str], /) -> bool:
        """Whether all keys are there."""
        return self._now("check", keys)[0] == b"1"

    def compare_set(self, key: str, expected_value: Value, desired_value: Value, /) -> bytes:
        """Set the value of a key if it is `expected_value`, or if the key is not there and
        `expected_value` is empty. Returns the value that the key has then; `expected_value` where
        the key is still not there."""
        values = [_bytes("compare_set", value) for value in (expected_value, desired_value)]
        return self._now("compare_set", [key], *values)[0]

    def append(self, key: str, value: Value, /) -> None:
        """Add bytes at the end of a value, which begins empty."""
        self._now("append", [key], _bytes("append", value))

    def multi_get(self, keys: Sequence[str], /) -> List[bytes]:
        """The values of several keys, as soon as all are there. DistStoreError if that takes longer
        than the timeout."""
        request = Request("get", _keys("multi_get", keys))
        return self._in_time("multi_get", request, None) if keys else []

    def multi_set(self, keys: Sequence[str], values: Sequence[Value], /) -> None:
        """Set the values of several keys at once."""
        if len(keys) != len(values):
            raise DistStoreError(
                f"multi_set: expected as many values as keys, got {len(keys)} keys and "
                f"{len(values)} values"
            )
        self._now("set", keys, *[_bytes("multi_set", value) for value in values])

    def queue_push(self, key: str, value: Value, /) -> None:
        """Put a value at the end of a queue."""
        self._now("push", [key], _bytes("queue_push", value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of a queue. Where the queue is empty this waits for a value, and
        raises DistStoreError after the timeout; without `block` it raises QueueEmptyError at once.
        """
        request = Request("pop", _keys("queue_pop", [key]))
        if block:
            return self._in_time("queue_pop", request, None, f"a value in the queue {key!r}")[0]
        found = self._ask(request, 0.0)
        if found is None:
            raise QueueEmptyError(
                f"queue_pop: expected a value in the queue {key!r} of {self._place()}, got an "
                "empty queue"
            )
        return found[0]

    def queue_len(self, key: str, /) -> int:
        """How many values a queue has."""
        return int(self._now("length", [key])[0])

    def delete_key(self, key: str, /) -> bool:
        """Remove a key; returns whether it was there."""
        return self._now("delete", [key])[0] == b"1"

    def num_keys(self) -> int:
        """How many keys have values."""
        return int(self._now("count", [""])[0])

    def list_keys(self) -> List[str]:
        """The keys that have values."""
        return [key.decode() for key in self._now("list", [""])]

    def has_extended_api(self) -> bool:
        """Whether the store has append(), multi_get(), multi_set() and queues."""
        return True

    def barrier(self, key: str, world_size: int, timeout: Optional[timedelta] = None) -> None:
        """Wait until so many processes have called it with the same key. DistStoreError if that
        takes longer than `timeout`, by default the store's."""
        self.add(key, 1)
        request = Request("reach", (key,), (str(world_size).encode(),))
        what = f"{world_size} processes at the barrier {key!r}"
        self._in_time("barrier", request, timeout, what)


_Call = Callable[[Any, Request, timedelta], Answer]


def _text(value: object) -> bytes:
    return str(int(value)).encode()  # type: ignore[call-overload]


def _get_each(store: Any, request: Request, seconds: timedelta) -> Answer:
    store.wait(list(request.keys), seconds)
    return [store.get(key) for key in request.keys]


def _call(*done: object) -> Answer:
    return []


# The answer to a request of a store that a program defined, by the functions that it has.
_BY_FUNCTIONS: Dict[str, Tuple[str, _Call]] = {
    "set": ("set", lambda s, r, _: _call(*[s.set(k, v) for k, v in zip(r.keys, r.values)])),
    "get": ("get", _get_each),
    "wait": ("wait", lambda s, r, seconds: _call(s.wait(list(r.keys), seconds))),
    "check": ("check", lambda s, r, _: [_text(s.check(list(r.keys)))]),
    "add": ("add", lambda s, r, _: [_text(s.add(r.keys[0], int(r.values[0])))]),
    "reach": ("add", lambda s, r, _: None),
    "compare_set": ("compare_set", lambda s, r, _: [s.compare_set(*r.keys, *r.values)]),
    "append": ("append", lambda s, r, _: _call(s.append(*r.keys, *r.values))),
    "delete": ("delete_key", lambda s, r, _: [_text(s.delete_key(*r.keys))]),
    "count": ("num_keys", lambda s, r, _: [_text(s.num_keys())]),
    "list": ("list_keys", lambda s, r, _: [k.encode() for k in s.list_keys()]),
    "push": ("queue_push", lambda s, r, _: _call(s.queue_push(*r.keys, *r.values))),
    "pop": ("queue_pop", lambda s, r, seconds: [s.queue_pop(*r.keys, bool(seconds))]),
    "length": ("queue_len", lambda s, r, _: [_text(s.queue_len(*r.keys))]),
}


class HashStore(Store):
    """A store within one process."""

    def __init__(self) -> None:
        super().__init__()
        self._table = Table()
        self._changed = threading.Condition()

    def _ask(self, request: Request, seconds: float) -> Answer:
        found: List[Answer] = []
        with self._changed:

            def there() -> bool:
                found[:] = [self._table.apply(request)]
                return found[0] is not None

            self._changed.wait_for(there, seconds)
            self._changed.notify_all()
        return found[0]

    def clone(self) -> HashStore:
        """Another store over the same content."""
        made = HashStore()
        made.__dict__.update(self.__dict__)
        return made


class PrefixStore(Store):
    """The keys of another store that begin with a prefix and a slash."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__(store.timeout)
        self.prefix = prefix
        self._store = store

    @property
    def underlying_store(self) -> Store:
        """The other store."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        while isinstance(store, PrefixStore):
            store = store._store
        return store

    @property
    def timeout(self) -> timedelta:
        """How long get(), wait() and the others wait: the time of the other store."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Choose that time, for the other store as well."""
        self._store.set_timeout(timeout)

    def _ask(self, request: Request, seconds: float) -> Answer:
        keys = tuple(f"{self.prefix}/{key}" for key in request.keys)
        answer = self._store._ask(request._replace(keys=keys), seconds)
        if request.action == "list" and answer is not None:
            start = len(f"{self.prefix}/".encode())
            return [key[start:] for key in answer]
        return answer

    def _place(self) -> str:
        return self._store._place()

    def clone(self) -> Store:
        """A store over a clone of the other one, with the same prefix."""
        return PrefixStore(self.prefix, self._store.clone())

    def has_extended_api(self) -> bool:
        """Whether the other store has append(), multi_get(), multi_set() and queues."""
        return self._store.has_extended_api()

    def close(self) -> None:
        """Close the other store."""
        self._store.close()

    def end(self) -> None:
        """End the other store."""
        self._store.end()


__all__: List[Any] = ["HashStore", "PrefixStore", "Store"]
