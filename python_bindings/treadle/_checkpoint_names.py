"""Which names a checkpoint may use, and what each stands for when it is read.

Nothing is imported because a file asks for it: a name is looked up in a table of harmless things,
and the call of a function is a call of ours, with checked arguments. Users may add classes of their
own that they trust.
"""

from __future__ import annotations

import builtins
import contextlib
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any, Callable, Iterator, Optional, Union

import treadle
from treadle import Tensor, _rebuild
from treadle._checkpoint_writer import name_in_files
from treadle._storage_types import STORAGE_NAMES


class StorageType:
    """Stands for a storage class in a checkpoint: says how to read the bytes."""

    def __init__(self, dtype: treadle.dtype) -> None:
        self.dtype = dtype


class Entry:
    """What a name stands for: a `value`, and how it is called, made and filled, where a file may do
    that."""

    def __init__(
        self,
        value: Any,
        call: Optional[Callable] = None,
        make: Optional[Callable] = None,
    ) -> None:
        self.value = value
        self.call = call
        self.make = make


def _expect(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


def _container(cls: type) -> Callable:
    """Containers are made empty, or from one list or tuple."""

    def make(*args: Any) -> Any:
        _expect(
            len(args) <= 1, f"expected at most one argument for {cls.__name__}, got {len(args)}"
        )
        _expect(
            not args or isinstance(args[0], (list, tuple, dict)),
            f"expected a list for {cls.__name__}, got {type(args[0]).__name__ if args else None}",
        )
        return cls(*args)

    return make


def _make_defaultdict(*args: Any) -> defaultdict:
    factories = (None, dict, list, set, int, float, str, bool, OrderedDict)
    _expect(
        len(args) <= 1, f"expected at most a factory for defaultdict, got {len(args)} arguments"
    )
    _expect(
        not args or any(args[0] is f for f in factories), "expected a plain factory for defaultdict"
    )
    return defaultdict(*args)


def _make_bytearray(*args: Any) -> bytearray:
    """A number would be a size, and a small file could ask for all memory."""
    if len(args) == 2 and isinstance(args[0], str):
        return bytearray(_encode(*args))
    _expect(
        not args or (len(args) == 1 and isinstance(args[0], bytes)), "expected bytes for bytearray"
    )
    return bytearray(*args)


def _make_complex(*args: Any) -> complex:
    _expect(all(isinstance(arg, (int, float)) for arg in args), "expected numbers for complex")
    return complex(*args)


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    _expect(isinstance(text, str) and encoding == "latin1", "expected text in latin1")
    return text.encode("latin1")


def _make_size(sizes: Any = ()) -> treadle.Size:
    _expect(
        isinstance(sizes, (tuple, list)) and all(type(n) is int for n in sizes),
        "expected integers for Size",
    )
    return treadle.Size(sizes)


def _make_device(*args: Any) -> treadle.device:
    _expect(
        1 <= len(args) <= 2 and isinstance(args[0], str) and all(type(n) is int for n in args[1:]),
        "expected a name and perhaps a number for device",
    )
    return treadle.device(*args)


def _get_layout(name: Any) -> Any:
    _expect(name == "torch.strided", f"expected the layout torch.strided, got {name!r}")
    return treadle.strided


def _expect_storage(storage: Any) -> None:
    _expect(isinstance(storage, Tensor), f"expected a storage, got {type(storage).__name__}")


def _rebuild_tensor(storage: Any, *rest: Any) -> Tensor:
    _expect_storage(storage)
    return _rebuild._rebuild_tensor(storage, *rest)


def _rebuild_tensor_v2(storage: Any, *rest: Any) -> Tensor:
    _expect_storage(storage)
    return _rebuild._rebuild_tensor_v2(storage, *rest)


def _rebuild_from_type_v2(function: Any, cls: Any, args: Any, state: Any) -> Tensor:
    _expect(function is _rebuild_tensor_v2, "expected a tensor to be rebuilt")
    _expect(isinstance(cls, type) and issubclass(cls, Tensor), "expected a class of tensors")
    tensor = _rebuild_tensor_v2(*args)
    requires_grad = tensor.requires_grad
    tensor = Tensor._make_subclass(cls, tensor.detach(), requires_grad)
    if isinstance(state, dict):
        tensor.__dict__.update(state)
    return tensor


def _plain(call: Callable) -> Entry:
    return Entry(call, call=call)


def _standard() -> dict[str, Entry]:
    entries: dict[str, Entry] = {
        "torch._utils._rebuild_tensor": _plain(_rebuild_tensor),
        "torch._utils._rebuild_tensor_v2": _plain(_rebuild_tensor_v2),
        "torch._utils._rebuild_parameter": _plain(_rebuild._rebuild_parameter),
        "torch._utils._rebuild_parameter_with_state": _plain(
            _rebuild._rebuild_parameter_with_state
        ),
        "torch._tensor._rebuild_from_type_v2": _plain(_rebuild_from_type_v2),
        "torch.serialization._get_layout": _plain(_get_layout),
        "torch.Size": Entry(treadle.Size, call=_make_size),
        "torch.device": Entry(treadle.device, call=_make_device),
        "torch.Tensor": Entry(Tensor),
        "_codecs.encode": _plain(_encode),
    }
    for cls in (OrderedDict, Counter, deque):
        make = _container(cls)
        entries[f"collections.{cls.__name__}"] = Entry(cls, call=make, make=make)
    entries["collections.defaultdict"] = Entry(
        defaultdict, call=_make_defaultdict, make=_make_defaultdict
    )
    for cls in (set, frozenset, list, dict, tuple):
        make = _container(cls)
        entries[f"builtins.{cls.__name__}"] = Entry(cls, call=make, make=make)
    entries["builtins.bytearray"] = Entry(bytearray, call=_make_bytearray)
    entries["builtins.complex"] = Entry(complex, call=_make_complex)
    for cls in (int, float, str, bool):
        entries[f"builtins.{cls.__name__}"] = Entry(cls)
    for name in [name for name in entries if name.startswith("builtins.")]:
        entries["__builtin__." + name.partition(".")[2]] = entries[name]
    for dtype, storage_name in STORAGE_NAMES.items():
        entries[f"torch.{storage_name}"] = Entry(StorageType(dtype))
        entries["torch." + str(dtype).rpartition(".")[2]] = Entry(dtype)
    for name in treadle.nn.__all__:
        cls = getattr(treadle.nn, name)
        if isinstance(cls, type) and issubclass(cls, treadle.nn.Module):
            # Made without running __init__; what it holds follows as its state.
            entries[f"{name_in_files(cls.__module__)}.{name}"] = Entry(cls, make=_bare(cls))
        elif isinstance(cls, type) and issubclass(cls, Tensor):
            entries[f"{name_in_files(cls.__module__)}.{name}"] = Entry(cls)
    return entries


def _bare(cls: type) -> Callable:
    def make(*args: Any) -> Any:
        _expect(not args, f"expected no arguments for {cls.__name__}, got {len(args)}")
        return object.__new__(cls)

    return make


_standard_entries: dict[str, Entry] = {}
_user_entries: dict[str, tuple[Any, Entry]] = {}


def find(name: str) -> Optional[Entry]:
    """What `name` stands for, or None if a checkpoint may not use it."""
    if name in _user_entries:
        return _user_entries[name][1]
    if not _standard_entries:
        _standard_entries.update(_standard())
    return _standard_entries.get(name)


_Given = Union[Callable, tuple[Callable, str]]


def add_safe_globals(safe_globals: list[_Given]) -> None:
    """Allow checkpoints to use these classes and functions (or pairs of one and the name it has in
    files).

    Loading may then call them: add only what is harmless whatever it is called with.
    """
    for given in safe_globals:
        value, name = (
            given
            if isinstance(given, tuple)
            else (given, f"{given.__module__}.{given.__qualname__}")
        )
        if not callable(value) or value in (builtins.eval, builtins.exec, builtins.__import__):
            raise TypeError(
                f"add_safe_globals: expected a class or a harmless function, got {value!r}"
            )
        make = None
        if isinstance(value, type):
            make = _bare(value) if issubclass(value, treadle.nn.Module) else _new_of(value)
        _user_entries[name] = (given, Entry(value, call=value, make=make))


def _new_of(cls: type) -> Callable:
    return lambda *args, **kwargs: cls.__new__(cls, *args, **kwargs)


def get_safe_globals() -> list[_Given]:
    """What `add_safe_globals` was given."""
    return [given for given, _ in _user_entries.values()]


def clear_safe_globals() -> None:
    """Allow only the standard names again."""
    _user_entries.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list[_Given]) -> Iterator[None]:
    """`add_safe_globals` for the length of a `with` block."""
    before = dict(_user_entries)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _user_entries.clear()
        _user_entries.update(before)
