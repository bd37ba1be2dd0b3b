"""Methods of UntypedStorage that are written in Python: it is a row of bytes.

Example:

    storage = treadle.UntypedStorage.from_file("weights.bin", shared=False, nbytes=1024)
    storage[16:32]                      # a storage over the same memory
    storage.tolist()
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import sys
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from treadle import _C, _names

UntypedStorage = _C.UntypedStorage

# The file that the memory of a storage is, by the number of the storage, while there is one.
_files: Dict[int, str] = {}


def _bytes(self: UntypedStorage) -> _C.Tensor:
    return self._as_tensor(_C.uint8)


def _over_buffer(buffer: Any, nbytes: int) -> UntypedStorage:
    if nbytes == 0:
        return UntypedStorage(0)
    return _C.frombuffer(buffer, dtype=_C.uint8, count=nbytes).untyped_storage()


def typed_storages() -> Any:
    """The class of storages with a dtype, for isinstance; no class before a program has made
    one."""
    module = sys.modules.get("treadle.storage")
    return module.TypedStorage if module else ()


# ---- elements and parts ----


def _place(self: UntypedStorage, index: int) -> int:
    size = len(self)
    if not -size <= index < size:
        raise IndexError(f"storage: expected an index in a storage of {size} bytes, got {index}")
    return index % size


def _range(self: UntypedStorage, index: slice) -> range:
    places = range(*index.indices(len(self)))
    if places.step != 1:
        raise RuntimeError(
            f"storage: expected a slice with a step of 1, got a step of {places.step}"
        )
    return places


def not_available(wanted: str) -> NotImplementedError:
    """The error for reading a storage without memory."""
    return NotImplementedError(
        f"Not available for the 'meta' device, whose storages have no memory: {wanted}"
    )


def __getitem__(self: UntypedStorage, index: Any) -> Any:
    """A byte as an int, or a storage over a part of the memory."""
    if self.device.type == "meta":
        raise not_available("an element")
    if isinstance(index, slice):
        places = _range(self, index)
        if self.device.type != "cpu":
            raise NotImplementedError(
                f"storage: expected a storage on the cpu to take a part of, got {self.device}"
            )
        return _over_buffer(memoryview(self)[places.start : places.stop], len(places))
    if not hasattr(index, "__index__"):
        raise TypeError(f"storage: expected an int or a slice, got {type(index).__name__}")
    return int(_bytes(self)[_place(self, index.__index__())])


def __setitem__(self: UntypedStorage, index: Any, value: Any) -> None:
    """Write a byte, or one byte to each place of a part."""
    if not hasattr(value, "__index__"):
        raise RuntimeError(f"storage: expected an int to write, got {type(value).__name__}")
    number = value.__index__() & 0xFF
    if isinstance(index, slice):
        places = _range(self, index)
        _bytes(self)[places.start : places.stop] = number
    elif hasattr(index, "__index__"):
        _bytes(self)[_place(self, index.__index__())] = number
    else:
        raise TypeError(f"storage: expected an int or a slice, got {type(index).__name__}")


def __iter__(self: UntypedStorage) -> Iterator[int]:
    """The bytes."""
    return iter(_bytes(self).tolist())


def tolist(self: UntypedStorage) -> List[int]:
    """The bytes as a list of ints."""
    return _bytes(self).tolist()


def fill_(self: UntypedStorage, value: int) -> UntypedStorage:
    """Write one byte everywhere."""
    self[:] = value
    return self


def copy_(self: UntypedStorage, source: Any, non_blocking: bool = False) -> UntypedStorage:
    """Write the bytes of another storage of as many; RuntimeError for another number."""
    given = source.untyped()
    if len(given) != len(self):
        raise RuntimeError(
            f"copy_: expected a storage of {len(self)} bytes, got one of {len(given)}"
        )
    _bytes(self).copy_(_bytes(given), non_blocking=non_blocking)
    return self


def clone(self: UntypedStorage) -> UntypedStorage:
    """A storage of the same class with a copy of the bytes."""
    copied = _bytes(self).clone().untyped_storage()
    return copied if type(self) is UntypedStorage else type(self)._over(copied)


def byteswap(self: UntypedStorage, dtype: _C.dtype) -> None:
    """Turn the bytes of each element of `dtype` around; of a complex one those of its two parts.
    RuntimeError where there is not a whole number of elements."""
    width = dtype.itemsize // (2 if dtype.is_complex else 1)
    if len(self) % dtype.itemsize:
        raise RuntimeError(
            f"byteswap: expected a multiple of {dtype.itemsize} bytes for {dtype}, got {len(self)}"
        )
    if width > 1 and len(self):
        numbers = _bytes(self).reshape((-1, width))
        numbers.copy_(numbers.flip(1))


def __str__(self: UntypedStorage) -> str:
    """The bytes, one in a line, and what it is."""
    lines = [] if self.device.type == "meta" else [f" {byte}" for byte in self]
    kind = f"{_names.spoken()}.storage.UntypedStorage"
    return "\n".join([*lines, f"[{kind}(device={self.device}) of size {len(self)}]"])


# ---- made of something ----


def from_buffer(
    cls: Any,
    buffer: Any,
    byte_order: Optional[str] = None,
    count: int = -1,
    offset: int = 0,
    *,
    dtype: _C.dtype,
) -> UntypedStorage:
    """A storage with a copy of the elements in a buffer, `count` of them from byte `offset` on, in
    the byte order of the machine. `byte_order` is that of the buffer, "little" or "big"."""
    if byte_order not in (None, "native", "little", "big"):
        raise ValueError(
            f"from_buffer: expected byte_order to be 'little' or 'big', got {byte_order!r}"
        )
    if byte_order is None and dtype.itemsize > 1:
        raise TypeError(f"from_buffer: expected byte_order for elements of {dtype}, got none")
    copied = bytearray(buffer)
    if offset >= len(copied) and count != 0:
        return UntypedStorage(0)
    values = _C.frombuffer(copied, dtype=dtype, count=count, offset=offset)
    storage = values.clone().untyped_storage()
    if byte_order == "big":
        storage.byteswap(dtype)
    return storage


def from_file(cls: Any, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
    """The first bytes of a file, mapped into memory.

    With `shared`, what is written goes to the file, which is made, or made longer, where it is too
    short. Without it, nothing is written to the file. RuntimeError for a file that cannot be opened
    or, without `shared`, is too short.
    """
    import mmap

    path = os.fspath(filename)
    flags = os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY
    try:
        descriptor = os.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        raise RuntimeError(
            f"from_file: expected a file that can be opened, got {path}: {error.strerror}"
        ) from error
    try:
        size = os.fstat(descriptor).st_size
        if size < nbytes:
            if not shared:
                raise RuntimeError(
                    f"from_file: expected a file of at least {nbytes} bytes, got {path} of {size}"
                )
            os.ftruncate(descriptor, nbytes)
        if nbytes == 0:
            return UntypedStorage(0)
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        memory = mmap.mmap(descriptor, nbytes, access=access)
    finally:
        os.close(descriptor)
    storage = _over_buffer(memory, nbytes)
    if shared:
        _files[storage._cdata] = path
        weakref.finalize(memory, _files.pop, storage._cdata, None).atexit = False
    return storage


def _filename(self: UntypedStorage) -> Optional[str]:
    """The path of the file that the memory is shared with; None where there is none."""
    return _files.get(self._cdata)


# ---- places and types ----


def to(self: UntypedStorage, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
    """The storage on a device: itself where it is there, else a copy."""
    where = self.device if device is None else _C.device(device)
    moved = _bytes(self).to(where, non_blocking=non_blocking)
    return self if moved.device == self.device else moved.untyped_storage()


def cpu(self: UntypedStorage) -> UntypedStorage:
    """The storage on the CPU: itself where it is there, else a copy."""
    return self.to("cpu")


def cuda(self: UntypedStorage, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
    """A copy on a CUDA device."""
    return self.to("cuda" if device is None else device, non_blocking)


def hpu(self: UntypedStorage, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
    """A copy on an HPU device."""
    return self.to("hpu" if device is None else device, non_blocking)


def mps(self: UntypedStorage) -> UntypedStorage:
    """A copy on an MPS device."""
    return self.to("mps")


def untyped(self: UntypedStorage) -> UntypedStorage:
    """The storage itself."""
    return self


def element_size(self: UntypedStorage) -> int:
    """1: elements are bytes."""
    return 1


def new(self: UntypedStorage) -> UntypedStorage:
    """An empty storage of the same class on the same device."""
    return type(self)(device=self.device)


def resizable(self: UntypedStorage) -> bool:
    """Whether resize_() may change the number of bytes."""
    return self.device.type != "meta" and not self._what_holds_it()


def get_device(self: UntypedStorage) -> int:
    """The number of the device; -1 for the CPU."""
    return -1 if self.device.index is None else self.device.index


def is_pinned(self: UntypedStorage, device: Any = None) -> bool:
    """Whether the memory is locked for transfers to a device."""
    return _bytes(self).is_pinned(device)


def pin_memory(self: UntypedStorage, device: Any = None) -> UntypedStorage:
    """A copy in memory that is locked for transfers to a device; itself where it is."""
    return self if self.is_pinned() else _bytes(self).pin_memory(device).untyped_storage()


def type_(self: UntypedStorage, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the type, or the bytes as numbers of another one: a TypedStorage."""
    from treadle import storage

    return storage.type_of_untyped(self, dtype)


def _number_type(name: str, dtype: _C.dtype) -> Callable[[UntypedStorage], Any]:
    def method(self: UntypedStorage) -> Any:
        from treadle.storage import TypedStorage

        return TypedStorage(wrap_storage=self, dtype=_C.uint8)._to_dtype(dtype)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"A TypedStorage with the bytes as numbers of {name}."
    return method


NUMBER_TYPES = {
    "bfloat16": _C.bfloat16,
    "bool": _C.bool,
    "byte": _C.uint8,
    "char": _C.int8,
    "complex_double": _C.complex128,
    "complex_float": _C.complex64,
    "double": _C.float64,
    "float": _C.float32,
    "half": _C.float16,
    "int": _C.int32,
    "long": _C.int64,
    "short": _C.int16,
    "float8_e4m3fn": _C.float8_e4m3fn,
    "float8_e4m3fnuz": _C.float8_e4m3fnuz,
    "float8_e5m2": _C.float8_e5m2,
    "float8_e5m2fnuz": _C.float8_e5m2fnuz,
}


def __sizeof__(self: UntypedStorage) -> int:
    """Bytes of the object and of the memory."""
    return object.__sizeof__(self) + self.nbytes()


def install() -> None:
    """Adds the methods to UntypedStorage."""
    methods: Sequence[Callable] = (
        __getitem__, __setitem__, __iter__, __str__, tolist, fill_, copy_, clone, byteswap, to, cpu,
        cuda, hpu, mps, untyped, element_size, new, resizable, get_device, is_pinned, pin_memory,
        __sizeof__,
    )  # fmt: skip
    for method in methods:
        setattr(UntypedStorage, method.__name__, method)
    for name, dtype in NUMBER_TYPES.items():
        setattr(UntypedStorage, name, _number_type(name, dtype))
    UntypedStorage.__repr__ = __str__  # type: ignore[assignment]
    UntypedStorage.__copy__ = clone
    UntypedStorage.type = type_
    UntypedStorage.from_buffer = classmethod(from_buffer)  # type: ignore[assignment]
    UntypedStorage.from_file = classmethod(from_file)  # type: ignore[assignment]
    UntypedStorage.filename = property(_filename)  # type: ignore[assignment]
    for name in ("cuda", "hpu"):
        setattr(UntypedStorage, f"is_{name}", property(_is_on(name)))
    UntypedStorage.is_sparse = UntypedStorage.is_sparse_csr = False


def _is_on(name: str) -> Callable[[UntypedStorage], bool]:
    return lambda self: self.device.type == name
