"""The reading half of checkpoints: an interpreter of pickles that can only build data.

A pickle is a program for a small stack machine, and Python's own machine lets it import and call
anything. This one knows the instructions that data needs, looks names up in the table of
`_safe_globals` and nowhere else, calls what that table says may be called, and bounds the work
that a small file can ask for.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import _compat_pickle
import enum
import pickle
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any, Callable, Optional, Union

from treadle import _C
from treadle.serialization._safe_globals import (
    Entry,
    StorageType,
    entry_of_added,
    reason_for_missing,
)

_LARGEST_KEY = 10_000
_MARK = object()


def from_python_2(module: str, name: str) -> tuple[str, str]:
    """The name that pickles of protocol 2 and older have as `__builtin__.set`, and so on."""
    module, name = _compat_pickle.NAME_MAPPING.get((module, name), (module, name))
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


class Reader:
    """Bytes that hold pickles (bytes or a mapped file) and the place in them."""

    def __init__(self, data: Any, place: int = 0) -> None:
        self.data = data
        self.place = place

    def take(self, count: int) -> bytes:
        end = self.place + count
        if end > len(self.data):
            raise pickle.UnpicklingError("load: expected a whole pickle, got one that ends early")
        part = self.data[self.place : end]
        self.place = end
        return part

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def line(self) -> str:
        end = self.data.find(b"\n", self.place)
        if end < 0:
            raise pickle.UnpicklingError("load: expected a whole pickle, got one that ends early")
        text = self.data[self.place : end].decode("utf-8")
        self.place = end + 1
        return text


class CheckpointUnpickler:
    """Reads one pickle and leaves the reader behind it.

    `find(module, name)` says what names stand for, or what to do about one that is refused.
    `load_storage(type, key, location, numel, view)` gives the storages that the pickle refers to,
    `encoding` is that of Python 2's text.
    """

    def __init__(
        self,
        reader: Reader,
        find: Callable[[str, str], Union[Entry, str]],
        load_storage: Optional[Callable] = None,
        encoding: str = "utf-8",
    ) -> None:
        self._reader = reader
        self._find = find
        self._load_storage = load_storage
        self._encoding = encoding
        self._version = 0
        # The error of `load_storage`: about the device or from the program's own map_location.
        self._storage_error: Optional[Exception] = None
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        # Entries by the identity of what they put on the stack, so that only those can be called.
        self._entries: dict[int, Entry] = {}
        # How many elements may be copied from one container to another. The bytes of an array of
        # NumPy come as text, and are copied to become bytes and to become the array.
        self._budget = 2 * len(reader.data) + 1000
        # How many values may be looked at before they are given to a function.
        self._plain_budget = 16 * len(reader.data) + 100_000
        # How many objects may be hashed.
        self._key_budget = 16 * len(reader.data) + 100_000

    def load(self) -> Any:
        """The object. Raises pickle.UnpicklingError for anything that is not plain data."""
        try:
            return self._run()
        except (pickle.UnpicklingError, MemoryError, _C.OutOfMemoryError):
            raise
        except Exception as error:
            if error is self._storage_error:
                raise
            reason = str(error)[:400] or type(error).__name__
            raise pickle.UnpicklingError(
                f"load: expected a well-formed checkpoint, got one with an error: {reason}"
            ) from error

    def _run(self) -> Any:
        reader, handlers = self._reader, _HANDLERS
        while True:
            code = reader.take(1)
            if code == pickle.STOP:
                return self._pop()
            handler = handlers.get(code)
            if handler is None:
                raise pickle.UnpicklingError(
                    f"load: expected an instruction that builds data, got {code!r} at byte "
                    f"{reader.place - 1}"
                )
            handler(self)

    # ---- the stack ---------------------------------------------------------------------------

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        value = self._top()
        del self._stack[-1]
        return value

    def _top(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            raise pickle.UnpicklingError("load: expected a value on the stack, got none")
        return self._stack[-1]

    def _pop_to_mark(self) -> list:
        for place in range(len(self._stack) - 1, -1, -1):
            if self._stack[place] is _MARK:
                items = self._stack[place + 1 :]
                del self._stack[place:]
                return items
        raise pickle.UnpicklingError("load: expected a mark on the stack, got none")

    def _spend(self, value: Any) -> None:
        self._budget -= _length(value)
        if self._budget < 0:
            raise pickle.UnpicklingError(
                "load: expected data about as large as the file, got far more"
            )

    # ---- instructions ------------------------------------------------------------------------

    def _proto(self) -> None:
        version = self._reader.number("<B")
        if version > pickle.HIGHEST_PROTOCOL:
            raise pickle.UnpicklingError(
                f"load: expected a pickle of protocol up to 5, got {version}"
            )
        self._version = version

    def _frame(self) -> None:
        self._reader.take(8)

    def _pop_one(self) -> None:
        if self._stack:
            del self._stack[-1]

    def _dup(self) -> None:
        self._push(self._top())

    def _put(self, form: str) -> None:
        self._memo[self._reader.number(form)] = self._top()

    def _get(self, form: str) -> None:
        number = self._reader.number(form)
        if number not in self._memo:
            raise pickle.UnpicklingError(
                f"load: expected a value kept under number {number}, got none"
            )
        self._push(self._memo[number])

    def _memoize(self) -> None:
        self._memo[len(self._memo)] = self._top()

    def _long(self, form: str) -> None:
        count = self._reader.number(form)
        if count < 0:
            raise pickle.UnpicklingError(
                "load: expected an integer of positive length, got a negative one"
            )
        self._push(int.from_bytes(self._reader.take(count), "little", signed=True))

    def _text(self, form: str) -> None:
        text = self._reader.take(self._reader.number(form))
        self._push(text.decode("utf-8", "surrogatepass"))

    def _bytes(self, form: str) -> None:
        self._push(self._reader.take(self._reader.number(form)))

    def _old_text(self, form: str) -> None:
        count = self._reader.number(form)
        if count < 0:
            raise pickle.UnpicklingError(
                "load: expected a string of positive length, got a negative one"
            )
        text = self._reader.take(count)
        if self._encoding != "bytes":
            text = text.decode(self._encoding, "surrogateescape")  # type: ignore[assignment]
        self._push(text)

    def _bytearray(self) -> None:
        self._push(bytearray(self._reader.take(self._reader.number("<Q"))))

    def _tuple_of(self, count: int) -> None:
        items = [self._pop() for _ in range(count)]
        self._push(tuple(reversed(items)))

    def _frozenset(self) -> None:
        items = self._pop_to_mark()
        for item in items:
            self._require_key(item)
        self._push(frozenset(items))

    def _append(self) -> None:
        value = self._pop()
        self._extend([value])

    def _own_type(self, target: Any, *bases: type) -> Optional[type]:
        """The one of the types that `target` is: exactly, or by a class of the program, whose own
        methods are then passed by."""
        cls = type(target)
        if cls in bases:
            return cls
        if id(cls) in self._entries or entry_of_added(cls) is not None:
            return next((base for base in bases if issubclass(cls, base)), None)
        return None

    def _extend(self, items: list) -> None:
        target = self._top()
        base = self._own_type(target, list, deque)
        if base is None:
            raise pickle.UnpicklingError(
                f"load: expected a list to append to, got {type(target).__name__}"
            )
        base.extend(target, items)  # type: ignore[attr-defined]

    def _add_items(self) -> None:
        items = self._pop_to_mark()
        target = self._top()
        if self._own_type(target, set) is None:
            raise pickle.UnpicklingError(
                f"load: expected a set to add to, got {type(target).__name__}"
            )
        for item in items:
            self._require_key(item)
            set.add(target, item)

    def _set_items(self, items: list) -> None:
        target = self._top()
        base = self._own_type(target, OrderedDict, defaultdict, Counter, dict)
        if base is None:
            raise pickle.UnpicklingError(
                f"load: expected a dictionary to fill, got {type(target).__name__}"
            )
        if len(items) % 2:
            raise pickle.UnpicklingError(
                "load: expected pairs of key and value, got an odd number of items"
            )
        for key, value in zip(items[::2], items[1::2]):
            self._require_key(key)
            base.__setitem__(target, key, value)  # type: ignore[index]

    def _set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set_items([key, value])

    def _global(self) -> None:
        module, name = self._reader.line(), self._reader.line()
        self._push_named(module, name)

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise pickle.UnpicklingError("load: expected a name as text, got something else")
        self._push_named(module, name)

    def _push_named(self, module: str, name: str) -> None:
        if self._version < 3:
            module, name = from_python_2(module, name)
        entry = self._find(module[:200], name[:200])
        if isinstance(entry, str):
            full = f"{module}.{name}"[:200]
            reason = reason_for_missing(full)
            if reason is not None:
                raise pickle.UnpicklingError(f"load: expected what exists here, got {reason}")
            raise pickle.UnpicklingError(
                f"load: expected only data, got the name {full}, which checkpoints may not use.\n"
                + entry
            )
        self._entries[id(entry.value)] = entry
        self._push(entry.value)

    def _entry_of(self, value: Any, what: str) -> Entry:
        entry = self._entries.get(id(value))
        if entry is None or getattr(entry, what) is None:
            raise pickle.UnpicklingError(
                f"load: expected something that checkpoints may call, got {type(value).__name__}"
            )
        return entry

    def _reduce(self) -> None:
        args, function = self._pop(), self._pop()
        entry = self._entry_of(function, "call")
        self._push(self._call(entry, entry.call, args, {}))  # type: ignore[arg-type]

    def _call(self, entry: Entry, function: Callable, args: Any, kwargs: Any) -> Any:
        if type(args) is not tuple or type(kwargs) is not dict:
            raise pickle.UnpicklingError(
                "load: expected a tuple of arguments, got " + type(args).__name__
            )
        for number, arg in enumerate(args):
            self._spend(arg)
            if number < entry.free_from:
                self.require_plain(arg)
            for item in _items(arg, list, tuple, deque):
                # Becomes the element of a set, or a pair of key and value.
                self._spend(item)
                for key in _items(item, list, deque) or (item,):
                    self._require_key(key)
        return function(*args, **kwargs)

    def _new_object(self) -> None:
        args, cls = self._pop(), self._pop()
        entry = self._entry_of(cls, "make")
        self._push(self._call(entry, entry.make, args, {}))  # type: ignore[arg-type]

    def _new_object_with_names(self) -> None:
        kwargs, args, cls = self._pop(), self._pop(), self._pop()
        entry = self._entry_of(cls, "make")
        self._push(self._call(entry, entry.make, args, kwargs))  # type: ignore[arg-type]

    def _build(self) -> None:
        state, target = self._pop(), self._top()
        cls = type(target)
        entry = self._entries.get(id(cls)) or entry_of_added(cls) or self._entry_of_made(cls)
        if entry is None or entry.state is None:
            raise pickle.UnpicklingError(
                f"load: expected an object that can be given state, got {cls.__name__}"
            )
        self._spend(state)
        for part in state if type(state) is tuple else ():
            self._spend(part)
        entry.state(target, state)

    def _entry_of_made(self, cls: type) -> Optional[Entry]:
        """The entry of a class that the file did not name: that of NumPy's values."""
        if cls.__module__.partition(".")[0] != "numpy":
            return None
        from treadle.serialization import _numpy

        return _numpy.state_entry(cls)

    def _persistent(self) -> None:
        reference = self._pop()
        if type(reference) is not tuple or not reference:
            raise pickle.UnpicklingError("load: expected the name of a storage, got something else")
        kind, *rest = (_text_of(part) for part in reference)
        if kind == "module" and len(rest) == 3:
            # Old files keep the source code of a class beside its name.
            self._push(rest[0])
            return
        if kind != "storage" or len(rest) < 4 or self._load_storage is None:
            raise pickle.UnpicklingError("load: expected the name of a storage, got something else")
        storage_type, key, location, numel = rest[:4]
        if not (
            type(storage_type) is StorageType
            and type(key) is str
            and type(location) is str
            and type(numel) is int
            and numel >= 0
        ):
            raise pickle.UnpicklingError(
                "load: expected the type, key, place and size of a storage, got others"
            )
        view = rest[4] if len(rest) > 4 else None
        try:
            self._push(self._load_storage(storage_type.dtype, key, location, numel, view))
        except Exception as error:
            self._storage_error = error
            raise

    def _require_key(self, value: Any) -> None:
        """Keys are hashed: by walking through tuples, without a limit of Python's own, and by a
        method of their class, which a file may have filled with anything."""
        count, left = 0, [value]
        while left:
            item = left.pop()
            count += 1
            if not self._is_trusted(type(item)) and not _compares_plainly(type(item)):
                raise pickle.UnpicklingError(
                    f"load: expected plain keys, got a {type(item).__name__}, which says itself "
                    "how it is compared"
                )
            parts = _items(item, tuple, frozenset)
            count += len(parts)
            left.extend(parts if count <= _LARGEST_KEY else ())
            if count > _LARGEST_KEY:
                raise pickle.UnpicklingError(
                    "load: expected a key of moderate size, got a deeply nested one"
                )
            self._key_budget -= 1
            if self._key_budget < 0:
                raise pickle.UnpicklingError("load: expected plain keys, got far too much in them")

    def require_plain(self, value: Any) -> None:
        """Refuses values of the program's own classes, whose methods a function could run."""
        left = [value]
        while left:
            item = left.pop()
            if not self._is_trusted(type(item)):
                raise pickle.UnpicklingError(
                    f"load: expected plain data to be given to a function, got a "
                    f"{type(item).__name__}"
                )
            parts = _items(item, list, tuple, dict, set, frozenset, deque)
            self._plain_budget -= 1 + len(parts)
            if self._plain_budget < 0:
                raise pickle.UnpicklingError(
                    "load: expected data about as large as the file, got far more"
                )
            left.extend(parts)
            if issubclass(type(item), dict):
                left.extend(dict.values(item))

    def _is_trusted(self, cls: type) -> bool:
        entry = self._entries.get(id(cls))
        return entry is None or entry.trusted


_SIZED = (list, tuple, dict, set, frozenset, deque, str, bytes, bytearray)


def _length(value: Any) -> int:
    """How many parts a container has; 0 for others. No method of a subclass runs."""
    cls = type(value)
    base = next((base for base in _SIZED if issubclass(cls, base)), None)
    return base.__len__(value) if base is not None else 0


def _items(value: Any, *bases: type) -> list:
    """The parts of a container of these types; empty for others. No method of a subclass runs."""
    cls = type(value)
    base = next((base for base in bases if issubclass(cls, base)), None)
    return list(base.__iter__(value)) if base is not None else []  # type: ignore[attr-defined]


def _compares_plainly(cls: type) -> bool:
    """Whether no method that the program wrote runs when an instance is a key."""
    for name in ("__hash__", "__eq__"):
        owner = next(base for base in cls.__mro__ if name in vars(base))
        if owner not in _PLAINLY_COMPARED:
            return False
    return True


_PLAINLY_COMPARED = (object, str, bytes, int, float, complex, tuple, frozenset, enum.Enum)


def _text_of(value: Any) -> Any:
    """Internal keys of old files may be bytes."""
    return value.decode("ascii") if type(value) is bytes else value


def _constant(value: Any) -> Callable:
    return lambda self: self._push(value)


def _fresh(make: Callable) -> Callable:
    return lambda self: self._push(make())


def _number(form: str) -> Callable:
    return lambda self: self._push(self._reader.number(form))


def _with(method: str, argument: Any) -> Callable:
    return lambda self: getattr(self, method)(argument)


_U = CheckpointUnpickler

_HANDLERS: dict[bytes, Callable] = {
    pickle.PROTO: _U._proto,
    pickle.FRAME: _U._frame,
    pickle.MARK: _constant(_MARK),
    pickle.POP: _U._pop_one,
    pickle.POP_MARK: _U._pop_to_mark,
    pickle.DUP: _U._dup,
    pickle.NONE: _constant(None),
    pickle.NEWTRUE: _constant(True),
    pickle.NEWFALSE: _constant(False),
    pickle.BININT: _number("<i"),
    pickle.BININT1: _number("<B"),
    pickle.BININT2: _number("<H"),
    pickle.LONG1: _with("_long", "<B"),
    pickle.LONG4: _with("_long", "<i"),
    pickle.BINFLOAT: _number(">d"),
    pickle.BINUNICODE: _with("_text", "<I"),
    pickle.SHORT_BINUNICODE: _with("_text", "<B"),
    pickle.BINUNICODE8: _with("_text", "<Q"),
    pickle.SHORT_BINSTRING: _with("_old_text", "<B"),
    pickle.BINSTRING: _with("_old_text", "<i"),
    pickle.SHORT_BINBYTES: _with("_bytes", "<B"),
    pickle.BINBYTES: _with("_bytes", "<I"),
    pickle.BINBYTES8: _with("_bytes", "<Q"),
    pickle.BYTEARRAY8: _U._bytearray,
    pickle.EMPTY_LIST: _fresh(list),
    pickle.EMPTY_DICT: _fresh(dict),
    pickle.EMPTY_SET: _fresh(set),
    pickle.EMPTY_TUPLE: _constant(()),
    pickle.TUPLE1: _with("_tuple_of", 1),
    pickle.TUPLE2: _with("_tuple_of", 2),
    pickle.TUPLE3: _with("_tuple_of", 3),
    pickle.TUPLE: lambda self: self._push(tuple(self._pop_to_mark())),
    pickle.LIST: lambda self: self._push(self._pop_to_mark()),
    pickle.FROZENSET: _U._frozenset,
    pickle.APPEND: _U._append,
    pickle.APPENDS: lambda self: self._extend(self._pop_to_mark()),
    pickle.ADDITEMS: _U._add_items,
    pickle.SETITEM: _U._set_item,
    pickle.SETITEMS: lambda self: self._set_items(self._pop_to_mark()),
    pickle.BINPUT: _with("_put", "<B"),
    pickle.LONG_BINPUT: _with("_put", "<I"),
    pickle.MEMOIZE: _U._memoize,
    pickle.BINGET: _with("_get", "<B"),
    pickle.LONG_BINGET: _with("_get", "<I"),
    pickle.GLOBAL: _U._global,
    pickle.STACK_GLOBAL: _U._stack_global,
    pickle.REDUCE: _U._reduce,
    pickle.NEWOBJ: _U._new_object,
    pickle.NEWOBJ_EX: _U._new_object_with_names,
    pickle.BUILD: _U._build,
    pickle.BINPERSID: _U._persistent,
}
