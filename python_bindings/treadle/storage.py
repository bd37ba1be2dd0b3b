"""Storages: the memory that tensors lie in.

    x.untyped_storage()             # UntypedStorage: bytes
    treadle.FloatStorage([1, 2])    # TypedStorage: numbers of one dtype; the older form

Tensors with their views do what these do; what is here is for programs that handle memory itself.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional

from treadle import _C, _names
from treadle._tensor.storage_types import STORAGE_NAMES, UNTYPED_NAME
from treadle._tensor.untyped_storage import NUMBER_TYPES, not_available

UntypedStorage = _C.UntypedStorage
StorageBase = _StorageBase = UntypedStorage

# "FloatStorage" of torch.float32, and the other way.
_NAMES: Dict[_C.dtype, str] = {d: n for d, n in STORAGE_NAMES.items() if n != UNTYPED_NAME}
_DTYPES: Dict[str, _C.dtype] = {name: dtype for dtype, name in _NAMES.items()}


def _storage_type_to_dtype_map() -> Dict[str, _C.dtype]:
    """The dtype of each name of a storage with a type."""
    return dict(_DTYPES)


def _dtype_to_storage_type_map() -> Dict[_C.dtype, str]:
    """The name of the storage with each dtype that has one."""
    return dict(_NAMES)


def _name_of(dtype: _C.dtype) -> str:
    if dtype not in _NAMES:
        raise KeyError(f"storage: expected a dtype with a storage type, got {dtype}")
    return _NAMES[dtype]


class TypedStorage:
    """A row of numbers of one dtype over an UntypedStorage.

    TypedStorage(3, dtype=treadle.float32) is of three numbers that were not written,
    TypedStorage([1, 2], dtype=...) of these, TypedStorage(wrap_storage=untyped, dtype=...) of those
    that lie there. RuntimeError for a storage that is not an UntypedStorage, and for a size or
    numbers beside it.
    """

    def __init__(
        self,
        *args: Any,
        wrap_storage: Optional[UntypedStorage] = None,
        dtype: Optional[_C.dtype] = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        if len(args) > 1:
            raise TypeError(f"TypedStorage: expected one size or sequence, got {len(args)}")
        if wrap_storage is not None:
            if args or device is not None:
                raise RuntimeError("TypedStorage: expected wrap_storage alone, got more beside it")
            if dtype is None:
                raise RuntimeError("TypedStorage: expected a dtype with wrap_storage, got none")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    "TypedStorage: expected wrap_storage to be an UntypedStorage, got "
                    f"{type(wrap_storage).__name__}"
                )
            self._untyped_storage = wrap_storage
        self.dtype: _C.dtype = _C.get_default_dtype() if dtype is None else dtype
        if wrap_storage is None:
            self._untyped_storage = _made_of(args[0] if args else 0, self.dtype, device)

    # ---- the memory ----

    @property
    def _tensor(self) -> _C.Tensor:
        return self._untyped_storage._as_tensor(self.dtype)

    def untyped(self) -> UntypedStorage:
        """The storage of bytes."""
        return self._untyped_storage

    def data_ptr(self) -> int:
        """Address of the first number."""
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    @property
    def device(self) -> _C.device:
        """Where the memory is."""
        return self._untyped_storage.device

    @property
    def filename(self) -> Optional[str]:
        """The path of the file that the memory is shared with; None where there is none."""
        return self._untyped_storage.filename

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a CUDA device."""
        return self._untyped_storage.is_cuda

    @property
    def is_hpu(self) -> bool:
        """False."""
        return False

    is_sparse = False

    def element_size(self) -> int:
        """Bytes of a number."""
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Bytes of all."""
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        """How many numbers there are."""
        return self.nbytes() // self.element_size()

    _size, _nbytes, _element_size = size, nbytes, element_size
    __len__ = size

    def resize_(self, size: int) -> None:
        """Change how many numbers there are, keeping what fits."""
        self._untyped_storage.resize_(size * self.element_size())

    def resizable(self) -> bool:
        """Whether resize_() may be called."""
        return self._untyped_storage.resizable()

    def get_device(self) -> int:
        """The number of the device; -1 for the CPU."""
        return self._untyped_storage.get_device()

    def share_memory_(self) -> "TypedStorage":
        """Move the memory to where other processes can share it."""
        self._untyped_storage.share_memory_()
        return self

    def is_shared(self) -> bool:
        """Whether other processes can share the memory."""
        return self._untyped_storage.is_shared()

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = None) -> "TypedStorage":
        return _as(cls, cls(size).untyped()).share_memory_()

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is locked for transfers to a device."""
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device: Any = None) -> "TypedStorage":
        """A copy in memory that is locked for transfers to a device; itself where it is."""
        return self._with(self._untyped_storage.pin_memory(device))

    # ---- the numbers ----

    def __getitem__(self, idx: int) -> Any:
        """One number. RuntimeError for a slice, which an UntypedStorage has."""
        if isinstance(idx, slice):
            raise RuntimeError(
                "storage: expected an int, as slices are those of untyped(), got a slice"
            )
        if self.device.type == "meta":
            raise not_available("an element")
        return self._tensor[self._place(idx)].item()

    _getitem = __getitem__

    def __setitem__(self, idx: Any, value: Any) -> None:
        """Write a number, or one to each place of a slice."""
        if isinstance(value, TypedStorage):
            value = value._tensor
        self._tensor[idx if isinstance(idx, slice) else self._place(idx)] = value

    _setitem = __setitem__

    def _place(self, idx: Any) -> int:
        if not hasattr(idx, "__index__"):
            raise TypeError(f"storage: expected an int or a slice, got {type(idx).__name__}")
        index, size = idx.__index__(), len(self)
        if not -size <= index < size:
            raise IndexError(
                f"storage: expected an index in a storage of {size} elements, got {index}"
            )
        return index % size

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> List[Any]:
        """The numbers as a list."""
        return self._tensor.tolist()

    def fill_(self, value: Any) -> "TypedStorage":
        """Write one number everywhere."""
        self._tensor.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: Optional[bool] = None) -> "TypedStorage":
        """Write the bytes of another storage of as many; RuntimeError for another number."""
        self._untyped_storage.copy_(source.untyped(), bool(non_blocking))
        return self

    # ---- other storages ----

    def _with(self, untyped: UntypedStorage) -> "TypedStorage":
        return TypedStorage(wrap_storage=untyped, dtype=self.dtype)

    _new_wrapped_storage = _with

    def _to_dtype(self, dtype: _C.dtype) -> "TypedStorage":
        converted = self._tensor.to(dtype, copy=dtype != self.dtype).untyped_storage()
        return TypedStorage(wrap_storage=converted, dtype=dtype)

    def clone(self) -> "TypedStorage":
        """A storage with a copy of the numbers."""
        return self._with(self._untyped_storage.clone())

    __copy__ = clone

    def __deepcopy__(self, memo: dict) -> "TypedStorage":
        from treadle._rebuild import deepcopy_storage

        return self._with(deepcopy_storage(self._untyped_storage, memo))

    def to(self, *, device: Any, non_blocking: bool = False) -> "TypedStorage":
        """The storage on a device."""
        return self._with(self._untyped_storage.to(device, non_blocking))

    def cpu(self) -> "TypedStorage":
        """The storage on the CPU."""
        return self._with(self._untyped_storage.cpu())

    def cuda(self, device: Any = None, non_blocking: bool = False) -> "TypedStorage":
        """A copy on a CUDA device."""
        return self._with(self._untyped_storage.cuda(device, non_blocking))

    def hpu(self, device: Any = None, non_blocking: bool = False) -> "TypedStorage":
        """A copy on an HPU device."""
        return self._with(self._untyped_storage.hpu(device, non_blocking))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of the type, "torch.FloatStorage"; or the numbers as those of another, by its
        name or class."""
        if dtype is None:
            return "torch." + _NAMES.get(self.dtype, "storage.TypedStorage")
        return self._to_dtype(_dtype_of(dtype))

    def pickle_storage_type(self) -> str:
        """The name of the type in files."""
        return _name_of(self.dtype)

    _pickle_storage_type = pickle_storage_type

    def __eq__(self, other: Any) -> bool:
        """Whether it is a view of the same memory with the same dtype."""
        return (
            isinstance(other, TypedStorage)
            and self.dtype == other.dtype
            and self._untyped_storage == other._untyped_storage
        )

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __reduce__(self) -> Any:
        return _rebuild, (self._untyped_storage, self.dtype)

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def __repr__(self) -> str:
        lines = [] if self.device.type == "meta" else [f" {value}" for value in self.tolist()]
        kind = f"{_names.spoken()}.storage.TypedStorage"
        what = f"{kind}(dtype={self.dtype}, device={self.device})"
        return "\n".join([*lines, f"[{what} of size {len(self)}]"])

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> "TypedStorage":
        """As UntypedStorage.from_buffer(); a class with a dtype has its own."""
        own = getattr(cls, "_own", None)
        dtype = kwargs.pop("dtype", own) or _C.get_default_dtype()
        untyped = UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs)
        return TypedStorage(wrap_storage=untyped, dtype=dtype)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> "TypedStorage":
        """As UntypedStorage.from_file(), for `size` numbers of the class's dtype. RuntimeError for
        a class without one."""
        own = getattr(cls, "_own", None)
        if own is None:
            raise RuntimeError("from_file: expected a class with a dtype, got TypedStorage")
        untyped = UntypedStorage.from_file(filename, shared, size * own.itemsize)
        return TypedStorage(wrap_storage=untyped, dtype=own)


def _number_type(name: str, dtype: _C.dtype) -> Any:
    def method(self: TypedStorage) -> TypedStorage:
        return self._to_dtype(dtype)

    method.__name__, method.__qualname__ = name, f"TypedStorage.{name}"
    method.__doc__ = f"The numbers as those of {name}."
    return method


for _name, _dtype in NUMBER_TYPES.items():
    setattr(TypedStorage, _name, _number_type(_name, _dtype))


def _made_of(content: Any, dtype: _C.dtype, device: Any) -> UntypedStorage:
    where = "cpu" if device is None else device
    if hasattr(content, "__index__"):
        return UntypedStorage(content.__index__() * dtype.itemsize, device=where)
    if isinstance(content, TypedStorage):
        content = content._tensor
    if isinstance(content, str) or not hasattr(content, "__len__"):
        raise TypeError(
            f"TypedStorage: expected a size or a sequence of numbers, got {type(content).__name__}"
        )
    return _C.tensor(content, dtype=dtype, device=where).untyped_storage()


# ---- the classes of one dtype ----


class _LegacyStorageMeta(type):
    """The type of FloatStorage and the like: calling one makes a TypedStorage of its dtype."""

    def __instancecheck__(cls, instance: Any) -> bool:
        own = getattr(cls, "_own", None)
        return isinstance(instance, TypedStorage) and own in (None, instance.dtype)

    @property
    def dtype(cls) -> _C.dtype:
        """The dtype of its numbers."""
        return cls._own  # type: ignore[attr-defined]


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    if TYPE_CHECKING:
        _own: _C.dtype

    def __new__(
        cls, *args: Any, wrap_storage: Optional[UntypedStorage] = None, **kwargs: Any
    ) -> Any:
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls._own, **kwargs)


def _as(cls: Any, untyped: UntypedStorage) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=getattr(cls, "_own", _C.float32))


def _make(name: str, dtype: _C.dtype) -> Any:
    text = f"A TypedStorage of {str(dtype).rpartition('.')[2]}."
    body = {"_own": dtype, "__module__": "treadle", "__doc__": text}
    return _LegacyStorageMeta(name, (_LegacyStorage,), body)


globals().update({name: _make(name, dtype) for name, dtype in _DTYPES.items()})


def __getattr__(name: str) -> Any:
    if name != "Storage":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[_NAMES[_C.get_default_dtype()]]  # that of the default dtype


def _dtype_of(kind: Any) -> _C.dtype:
    if isinstance(kind, _C.dtype):
        return kind
    if isinstance(kind, _LegacyStorageMeta):
        return kind.dtype
    name = kind.rpartition(".")[2] if isinstance(kind, str) else ""
    if name not in _DTYPES:
        raise RuntimeError(f"type: expected the type of a storage, got {kind!r}")
    return _DTYPES[name]


def type_of_untyped(storage: UntypedStorage, dtype: Any) -> Any:
    """UntypedStorage.type()."""
    if dtype is None:
        return "torch.storage.UntypedStorage"
    return TypedStorage(wrap_storage=storage, dtype=_C.uint8)._to_dtype(_dtype_of(dtype))


def from_file(
    filename: Any,
    shared: Optional[bool] = None,
    size: Optional[int] = 0,
    *,
    dtype: Optional[_C.dtype] = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Optional[bool] = False,
    requires_grad: bool = False,
) -> _C.Tensor:
    """A tensor of `size` numbers over a file that is mapped into memory: see
    UntypedStorage.from_file().

    RuntimeError for a file that cannot be opened or is too short, for a device but the CPU, and for
    another layout than strided.
    """
    if device is not None and _C.device(device).type != "cpu":
        raise RuntimeError(f"from_file: expected the device cpu, got {device}")
    if layout not in (None, _C.strided):
        raise RuntimeError(f"from_file: expected the layout strided, got {layout}")
    if pin_memory:
        raise RuntimeError("from_file: expected pin_memory=False, as the memory is a file's")
    kind = _C.get_default_dtype() if dtype is None else dtype
    nbytes = (size or 0) * kind.itemsize
    untyped = UntypedStorage.from_file(filename, bool(shared), nbytes)
    return untyped._as_tensor(kind).requires_grad_(requires_grad)


def storage_of(tensor: _C.Tensor) -> TypedStorage:
    """Tensor.storage()."""
    return TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)


def _rebuild(untyped: UntypedStorage, dtype: _C.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


__all__ = ["TypedStorage", "UntypedStorage"]
