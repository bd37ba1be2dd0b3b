"""The names that a checkpoint may use, and what each stands for when it is read.

Nothing is imported because a file asks for it: a name is looked up in a table of harmless things,
and the call of a function is a call of ours, with checked arguments. Users may add classes of their
own that they trust. The classes that `weights_only=True` leaves out are in `_program_classes`.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import builtins
import contextlib
import math
import types
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any, Callable, Iterator, Optional, Union

from treadle import _C, _names, _rebuild
from treadle._C import Tensor
from treadle._introspection import build
from treadle._names.pytorch_paths import PACKAGE_IN_FILES, class_named
from treadle._tensor import legacy_types
from treadle._tensor.storage_types import (
    QUANTIZED_STORAGE_NAMES,
    STORAGE_NAMES,
    UNTYPED_NAME,
)
from treadle._tensor.type_info import QUANTIZED


class StorageType:
    """Stands for a storage class in a checkpoint: says how to read the bytes. No dtype: as
    bytes."""

    def __init__(self, dtype: Optional[_C.dtype]) -> None:
        self.dtype = dtype


class Entry:
    """The meaning of a name: a `value`, and how it is called, made and given its state, where a
    file may do that.

    The arguments of a call are plain data: values of the program's own classes, which have methods
    that a function of ours could run, are taken from argument number `free_from` on only. `trusted`
    says whether the methods of its instances may run while a file is read (to hash a key, to take
    an item). Those of the program's own classes, which a file fills at will, may not.
    """

    def __init__(
        self,
        value: Any,
        call: Optional[Callable] = None,
        make: Optional[Callable] = None,
        state: Optional[Callable[[Any, Any], None]] = None,
        trusted: bool = True,
        free_from: float = math.inf,
    ) -> None:
        self.value = value
        self.call = call
        self.make = make
        self.state = state
        self.trusted = trusted
        self.free_from = free_from


def expect(condition: bool, what: str) -> None:
    """Raise ValueError, which the reader turns into its own error, unless the condition holds."""
    if not condition:
        raise ValueError(what)


def give_state(target: Any, state: Any) -> None:
    """Give an object its attributes: those of a dictionary, or of a pair of dictionaries, the
    second of which are slots. Neither methods nor properties of its class run."""
    attributes, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    for part in (attributes, slots):
        expect(
            part is None or type(part) in (dict, OrderedDict) and all(type(k) is str for k in part),
            f"expected a dictionary of attributes, got {type(part).__name__}",
        )
    cls = type(target)
    places = _descriptors(cls, "__dict__") if attributes else []
    expect(bool(places) or not attributes, f"expected no attributes for {cls.__name__}, got some")
    found = {name: _descriptors(cls, name) for name in slots or ()}
    for name, members in found.items():
        expect(bool(members), f"expected slots of {cls.__name__}, got {name!r}")
    if attributes:
        places[0].__get__(target).update(attributes)
    for name, members in found.items():
        members[0].__set__(target, slots[name])  # type: ignore[index]


def _descriptors(cls: type, name: str) -> list[Any]:
    """The interpreter's own descriptors of an attribute of that name: slots and `__dict__`."""
    own = (types.MemberDescriptorType, types.GetSetDescriptorType)
    made = (vars(base).get(name) for base in cls.__mro__ if base is not object)
    kinds = own if name == "__dict__" else own[:1]
    return [descriptor for descriptor in made if type(descriptor) in kinds]


def set_state(target: Any, state: Any) -> None:
    """BUILD for classes that say themselves what their state is."""
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
    else:
        give_state(target, state)


def _container(cls: type) -> Callable:
    """Containers are made empty, or from one list, tuple or dictionary; a deque has a largest
    length, too."""
    most = 2 if cls is deque else 1

    def make(*args: Any) -> Any:
        expect(
            len(args) <= most,
            f"expected at most {most} arguments for {cls.__name__}, got {len(args)}",
        )
        expect(
            not args or type(args[0]) in (list, tuple, dict, OrderedDict),
            f"expected a list for {cls.__name__}, got {type(args[0]).__name__ if args else None}",
        )
        expect(
            len(args) < 2 or args[1] is None or type(args[1]) is int,
            f"expected an integer as the largest length of {cls.__name__}",
        )
        return cls(*args)

    return make


def _make_defaultdict(*args: Any) -> defaultdict:
    factories = (None, dict, list, set, int, float, str, bool, OrderedDict)
    expect(len(args) <= 1, f"expected at most a factory for defaultdict, got {len(args)} arguments")
    expect(
        not args or any(args[0] is f for f in factories), "expected a plain factory for defaultdict"
    )
    return defaultdict(*args)


def _make_bytearray(*args: Any) -> bytearray:
    """A number would be a size, and a small file could ask for all memory."""
    if len(args) == 2 and isinstance(args[0], str):
        return bytearray(_encode(*args))
    expect(
        not args or (len(args) == 1 and isinstance(args[0], bytes)), "expected bytes for bytearray"
    )
    return bytearray(*args)


def _make_complex(*args: Any) -> complex:
    expect(all(isinstance(arg, (int, float)) for arg in args), "expected numbers for complex")
    return complex(*args)


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    expect(isinstance(text, str) and encoding == "latin1", "expected text in latin1")
    return text.encode("latin1")


def _make_size(sizes: Any = ()) -> _C.Size:
    expect(
        isinstance(sizes, (tuple, list)) and all(type(n) is int for n in sizes),
        "expected integers for Size",
    )
    return _C.Size(sizes)


def _make_device(*args: Any) -> _C.device:
    expect(
        1 <= len(args) <= 2 and isinstance(args[0], str) and all(type(n) is int for n in args[1:]),
        "expected a name and perhaps a number for device",
    )
    return _C.device(*args)


def _get_layout(name: Any) -> Any:
    layouts = _rebuild.LAYOUTS_OF_FILES
    expect(
        isinstance(name, str) and name in layouts,
        f"expected a layout of {', '.join(layouts)}, got a tensor of {name!r}",
    )
    return layouts[name]


def _over_a_storage(rebuild: Callable) -> Callable:
    def call(storage: Any, *rest: Any) -> Tensor:
        expect(
            issubclass(type(storage), Tensor), f"expected a storage, got {type(storage).__name__}"
        )
        return rebuild(storage, *rest)

    return call


_rebuild_tensor_v2 = _over_a_storage(_rebuild._rebuild_tensor_v2)
_rebuild_tensor_v3 = _over_a_storage(_rebuild._rebuild_tensor_v3)


def _rebuild_from_type_v2(function: Any, cls: Any, args: Any, state: Any) -> Tensor:
    known = (
        _rebuild_tensor_v2,
        _rebuild_tensor_v3,
        _rebuild._rebuild_parameter,
        _rebuild._rebuild_wrapper_subclass,
    )
    expect(any(function is f for f in known), "expected a tensor to be rebuilt")
    expect(isinstance(cls, type) and issubclass(cls, Tensor), "expected a class of tensors")
    expect(type(args) is tuple, "expected a tuple of arguments")
    tensor = function(*args)
    if type(tensor) is not cls:
        requires_grad = tensor.requires_grad
        tensor = Tensor._make_subclass(cls, tensor.detach(), requires_grad)
    give_state(tensor, state)
    return tensor


def _rebuild_parameter_with_state(
    data: Any, requires_grad: Any, backward_hooks: Any, state: Any
) -> Tensor:
    parameter = _rebuild._rebuild_parameter(data, requires_grad, backward_hooks)
    give_state(parameter, state)
    return parameter


def _plain(call: Callable, free_from: float = math.inf) -> Entry:
    return Entry(call, call=call, free_from=free_from)


def _standard() -> dict[str, Entry]:
    entries: dict[str, Entry] = {
        "torch._utils._rebuild_tensor": _plain(_over_a_storage(_rebuild._rebuild_tensor)),
        "torch._utils._rebuild_tensor_v2": _plain(_rebuild_tensor_v2),
        "torch._utils._rebuild_tensor_v3": _plain(_rebuild_tensor_v3),
        "torch._utils._rebuild_sparse_tensor": _plain(_rebuild._rebuild_sparse_tensor),
        "torch._utils._rebuild_qtensor": _plain(_over_a_storage(_rebuild._rebuild_qtensor)),
        "torch._utils._rebuild_parameter": _plain(_rebuild._rebuild_parameter),
        "torch._utils._rebuild_parameter_with_state": _plain(_rebuild_parameter_with_state, 3),
        "torch._utils._rebuild_meta_tensor_no_storage": _plain(
            _rebuild._rebuild_meta_tensor_no_storage
        ),
        "torch._utils._rebuild_wrapper_subclass": _plain(_rebuild._rebuild_wrapper_subclass),
        "torch._tensor._rebuild_from_type_v2": _plain(_rebuild_from_type_v2, 3),
        "torch.serialization._get_layout": _plain(_get_layout),
        "treadle._rebuild.dtype_named": _plain(_rebuild.dtype_named),
        "treadle._rebuild.layout_named": _plain(_rebuild.layout_named),
        "treadle._rebuild.rebuild_layout_tensor": _plain(_rebuild.rebuild_layout_tensor),
        "torch.Size": Entry(_C.Size, call=_make_size),
        "torch.device": Entry(_C.device, call=_make_device),
        "torch.Tensor": Entry(Tensor),
        f"torch.storage.{UNTYPED_NAME}": Entry(StorageType(None)),
        f"torch.{UNTYPED_NAME}": Entry(StorageType(None)),
        "_codecs.encode": _plain(_encode),
    }
    for cls in (OrderedDict, Counter, deque):
        make = _container(cls)
        entries[f"collections.{cls.__name__}"] = Entry(
            cls, call=make, make=make, state=give_state, free_from=0
        )
    entries["collections.defaultdict"] = Entry(
        defaultdict, call=_make_defaultdict, make=_make_defaultdict
    )
    for cls in (set, frozenset, list, dict, tuple):  # type: ignore[assignment]
        make = _container(cls)
        entries[f"builtins.{cls.__name__}"] = Entry(cls, call=make, make=make, free_from=0)
    entries["builtins.bytearray"] = Entry(bytearray, call=_make_bytearray)
    entries["builtins.complex"] = Entry(complex, call=_make_complex)
    for cls in (int, float, str, bool):  # type: ignore[assignment]
        entries[f"builtins.{cls.__name__}"] = Entry(cls)
    for dtype in STORAGE_NAMES:
        entries["torch." + str(dtype).rpartition(".")[2]] = Entry(dtype)
    for dtype, name in STORAGE_NAMES.items():
        if name != UNTYPED_NAME:
            entries[f"torch.{name}"] = Entry(StorageType(dtype))
    for dtype, name in QUANTIZED_STORAGE_NAMES.items():
        entries[f"torch.{name}"] = Entry(StorageType(QUANTIZED[dtype]))
        entries["torch." + str(dtype).rpartition(".")[2]] = Entry(dtype)
    for scheme in (build.per_tensor_affine, build.per_channel_affine):
        entries["torch." + str(scheme).rpartition(".")[2]] = Entry(scheme)
    for name in legacy_types.NAMES:
        entries[f"torch.{name}"] = Entry(getattr(_names.package(), name))
    for name in ("contiguous_format", "preserve_format", "channels_last"):
        entries[f"torch.{name}"] = Entry(getattr(_C, name))
    for name in ("Parameter", "Buffer"):
        full = f"torch.nn.parameter.{name}"
        entries[full] = Entry(class_named(full))
    return entries


_standard_entries: dict[str, Entry] = {}
_user_entries: dict[str, tuple[Any, Entry]] = {}
_data_classes: dict[str, type] = {}  # from the names that files have

# Names that files of PyTorch have and that cannot be read here, with the reason.
_MISSING = {
    "torch._utils._rebuild_nested_tensor": "a nested tensor, which does not exist here",
    "torch._utils._rebuild_device_tensor_from_numpy": "a tensor of a device without storages",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": "a tensor of a device without storages",
    **{
        f"torch.{name}": f"the element type {name}, which does not exist here"
        for name in (
            "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "float8_e8m0fnu",
            "float4_e2m1fn_x2", "complex32", "quint4x2", "quint2x4", "QUInt4x2Storage",
            "QUInt2x4Storage",
        )
    },
}  # fmt: skip

# Never allowed, whatever a program adds.
_FORBIDDEN_MODULES = ("sys", "os", "posix", "nt")

ALLOW = (
    "If it is harmless whatever it is called with, allow it with\n"
    "treadle.serialization.add_safe_globals([...])."
)


def find(module: str, name: str) -> Union[Entry, str]:
    """The entry of the name, or what to do about it if a checkpoint may not use it."""
    entry = known(module, name)
    if entry is not None:
        return entry
    return (
        "weights_only=True takes tensors and containers. Without it, layers, NumPy's values and\n"
        f"classes that the program has are loaded, too. {ALLOW}"
    )


def known(module: str, name: str) -> Optional[Entry]:
    """The entry of a name in the tables: that of the user and the standard one."""
    full = f"{module}.{name}"
    if module in _FORBIDDEN_MODULES:
        return None
    if full in _user_entries:
        return _user_entries[full][1]
    if full in _data_classes:
        from treadle.serialization import _program_classes

        return _program_classes._entry_of_class(_data_classes[full])
    return standard_entries().get(full)


def add_data_classes(*classes: type) -> None:
    """Allow checkpoints to have instances of classes of this package. A module that is imported on
    demand calls it for those of its classes that are data."""
    for cls in classes:
        module = cls.__module__.partition(".")[2]
        _data_classes[f"{PACKAGE_IN_FILES}.{module}.{cls.__qualname__}"] = cls


def standard_entries() -> dict[str, Entry]:
    """The names that every checkpoint may use."""
    if not _standard_entries:
        _standard_entries.update(_standard())
    return _standard_entries


def entry_of_added(value: Any) -> Optional[Entry]:
    """The entry of a class that the program has allowed, which the file need not have named: that
    of a value which another function of the program made."""
    for _, entry in _user_entries.values():
        if entry.value is value:
            return entry
    return None


def reason_for_missing(full: str) -> Optional[str]:
    """Why a name that PyTorch's files may have cannot be read here."""
    return _MISSING.get(full)


_Given = Union[Callable, tuple[Callable, str]]


def add_safe_globals(safe_globals: list[_Given]) -> None:
    """Allow checkpoints to use these classes and functions (or pairs of one and the name it has in
    files).

    Loading may then call them: add only what is harmless whatever it is called with.
    """
    from treadle import nn

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
            make = _bare(value) if issubclass(value, nn.Module) else _new_of(value)
        _user_entries[name] = (
            given,
            Entry(value, call=value, make=make, state=set_state, free_from=0),
        )


def _bare(cls: type) -> Callable:
    def make(*args: Any) -> Any:
        expect(not args, f"expected no arguments for {cls.__name__}, got {len(args)}")
        return object.__new__(cls)

    return make


def _new_of(cls: type) -> Callable:
    return lambda *args, **kwargs: cls.__new__(cls, *args, **kwargs)


def get_safe_globals() -> list[_Given]:
    """The classes and functions given to `add_safe_globals`."""
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
