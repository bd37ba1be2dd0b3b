"""Saving and loading: `treadle.save(net.state_dict(), "net.pt")`, `treadle.load("net.pt")`.

Files have PyTorch's format and go both ways. Loading never runs code: it builds data from a list of
allowed names, to which `add_safe_globals` adds, and from the classes of the running program, whose
instances are filled without running any of their methods. Saving replaces a file in one step, so
that a killed program leaves the old one.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import enum
import functools
import io
import mmap as _mmap
import os
import pickle
import pickletools
import warnings
from typing import Any, BinaryIO, Callable, Iterator, Optional, Union

from treadle import _C, _names
from treadle._atomic_file import replacing
from treadle._rebuild import tensor_bytes
from treadle.serialization import _safe_globals
from treadle.serialization._reader import CheckpointUnpickler, Reader, from_python_2
from treadle.serialization._safe_globals import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from treadle.serialization._storages import MapLocation, Placement, ZipStorages
from treadle.serialization._writer import CheckpointPickler
from treadle.utils.serialization import config

MAP_LOCATION = MapLocation  # PyTorch's name, for annotations

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]

DEFAULT_PROTOCOL = 2
# Constants of PyTorch's format before 1.6.
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
STORAGE_KEY_SEPARATOR = ","
SHORT_SIZE, INT_SIZE, LONG_SIZE = 2, 4, 4
IS_WINDOWS = False

_File = Union[str, os.PathLike, BinaryIO]


def save(
    obj: Any,
    f: _File,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object with all its tensors to a file. Tensors that share memory share it again when
    loaded.

    f: a path or a file open for writing. `pickle_module` is there for old programs: the names and
    the opcodes are those of the standard pickle module.
    `_use_new_zipfile_serialization=False` writes PyTorch's format before 1.6.
    """
    # Imported at its first use: it needs zipfile, which takes a while to import.
    from treadle.serialization import _archive, _legacy

    pickled = io.BytesIO()
    pickler = CheckpointPickler(pickled, pickle_protocol, _use_new_zipfile_serialization)
    pickler.dump(obj)

    def write(file: BinaryIO) -> None:
        if _use_new_zipfile_serialization:
            contents = (_bytes_of(storage) for storage in pickler.storages)
            order = None if _disable_byteorder_record else b"little"
            alignment = config.save.storage_alignment
            _archive.write(file, pickled.getvalue(), contents, order, alignment)
        else:
            stored = [(key, numel, _bytes_of(storage)) for key, numel, storage in pickler.stored()]
            _legacy.write(file, pickled.getvalue(), stored, pickle_protocol)

    if isinstance(f, (str, os.PathLike)):
        with replacing(os.fspath(f)) as file:
            write(file)
    elif hasattr(f, "write"):
        write(f)
    else:
        raise TypeError(f"save: expected a path or a file open for writing, got {type(f).__name__}")


def _bytes_of(storage: Any) -> Any:
    if storage.nbytes() == 0:
        return b""
    if ZipStorages.skipping:
        return bytes(storage.nbytes())
    return tensor_bytes(storage._as_tensor(_C.uint8))


def load(
    f: _File,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: Optional[bool] = None,
    mmap: Optional[bool] = None,
    **pickle_load_args: Any,
) -> Any:
    """Read an object that `save` (or PyTorch's) wrote.

    f: a path or a file open for reading. `map_location` says where tensors go: a device, a
    dictionary from the device in the file to another, or a function of a storage (a tensor of one
    dimension) and the device in the file. With `mmap` the elements stay in the file until they are
    used. `encoding` is that of the text of Python 2, "utf-8" unless given; "bytes" leaves bytes.

    No code of the file runs, whatever `weights_only` is. None, the default, takes tensors,
    containers, plain values of Python and NumPy, what `add_safe_globals` was given, layers and
    optimisers of this library, and classes that the running program has, as data. True takes only
    tensors, containers, plain values and what `add_safe_globals` was given. False takes classes of
    installed packages, too. Functions of the program, hooks of layers, and classes with a
    `__setstate__` or `__del__` of their own are refused, with the reason.

    Raises pickle.UnpicklingError for what may not be loaded, RuntimeError for a damaged file,
    EOFError for an empty one.
    """
    weights_only = _weights_only(weights_only, pickle_module)
    if isinstance(f, (str, os.PathLike)):
        mmap = config.load.mmap if mmap is None else mmap
        shared = bool(mmap) and config.load.mmap_flags == MAP_SHARED
        with open(f, "r+b" if shared else "rb") as file:
            return _load(file, map_location, weights_only, bool(mmap), shared, pickle_load_args)
    if not (hasattr(f, "read") and hasattr(f, "seek")):
        raise TypeError(f"load: expected a path or a file open for reading, got {type(f).__name__}")
    if mmap:
        raise ValueError("load: expected a path where mmap=True, got a file object")
    return _load(f, map_location, weights_only, False, False, pickle_load_args)


def _weights_only(given: Optional[bool], pickle_module: Any) -> Optional[bool]:
    forced, forced_off = (
        os.getenv(name, "0").lower() in ("1", "y", "yes", "true")
        for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    )
    if forced and forced_off:
        raise RuntimeError(
            "load: expected one of TORCH_FORCE_WEIGHTS_ONLY_LOAD and "
            "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD to be set, got both"
        )
    if given is None and forced_off:
        warnings.warn("load: TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD is set", UserWarning, stacklevel=3)
        given = False
    only = True if forced else given
    if only and pickle_module is not None:
        raise RuntimeError(
            "load: expected no pickle_module where weights_only=True, got one; weights are read "
            "without it"
        )
    return False if only is None and pickle_module is not None else only


def _load(
    file: BinaryIO,
    map_location: MapLocation,
    weights_only: Optional[bool],
    use_mmap: bool,
    shared: bool,
    arguments: dict,
) -> Any:
    from treadle.serialization import _archive, _legacy

    encoding = arguments.get("encoding", "utf-8")
    placement, find = Placement(map_location), _find(weights_only)
    begin = file.tell()
    head = file.read(8)
    if _archive.looks_like_one(head):
        archive = _archive.Archive(file, use_mmap, shared)
        storages = ZipStorages(archive, placement)
        reader = Reader(bytes(archive.read("data.pkl")))
        return CheckpointUnpickler(reader, find, storages.load, encoding).load()
    if use_mmap:
        raise RuntimeError("load: expected a file in the zip format where mmap=True, got another")
    if not head:
        raise EOFError("load: expected a checkpoint, got an empty file")
    if not _legacy.looks_like_one(head):
        raise pickle.UnpicklingError(
            f"load: expected a checkpoint, got a file that starts with {head!r}"
        )
    file.seek(begin)
    with _whole(file, begin) as data:
        value, length = _legacy.read(data, find, placement, encoding)
    # Old programs put several into one file.
    file.seek(begin + length)
    return value


def _find(weights_only: Optional[bool]) -> Callable:
    if weights_only:
        return _safe_globals.find
    # Imported at its first use: it brings modules that programs may not need.
    from treadle.serialization import _program_classes

    return functools.partial(_program_classes.find, installed=weights_only is False)


@contextlib.contextmanager
def _whole(file: BinaryIO, begin: int) -> Iterator[Any]:
    """The rest of the file: mapped where that is possible."""
    try:
        mapped = _mmap.mmap(file.fileno(), 0, access=_mmap.ACCESS_READ) if begin == 0 else None
    except (OSError, ValueError, AttributeError):
        mapped = None
    if mapped is None:
        yield file.read()
        return
    with mapped:
        yield mapped


def get_unsafe_globals_in_checkpoint(f: _File) -> list[str]:
    """The names in a checkpoint that `load` with weights_only=True would refuse, as
    "module.name"."""
    from treadle.serialization import _archive

    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return get_unsafe_globals_in_checkpoint(file)
    begin = f.tell()
    is_zip = _archive.looks_like_one(f.read(8))
    f.seek(begin)
    if not is_zip:
        raise ValueError(
            "get_unsafe_globals_in_checkpoint: expected a checkpoint in the zip format"
        )
    pickled = bytes(_archive.Archive(f, False, False).read("data.pkl"))
    return [
        f"{module}.{name}"
        for module, name in _names_in(pickled)
        if isinstance(_safe_globals.find(module, name), str)
    ]


def _names_in(pickled: bytes) -> list[tuple[str, str]]:
    found: dict[tuple[str, str], None] = {}
    texts = [
        "",
        "",
    ]  # the last two, which are what STACK_GLOBAL takes in pickles as they are written
    memo: dict[Any, str] = {}
    try:
        for opcode, argument, _ in pickletools.genops(pickled):
            if opcode.name == "GLOBAL":
                module, _, name = argument.partition(" ")  # type: ignore[union-attr]
                found[from_python_2(module, name)] = None
            elif opcode.name == "STACK_GLOBAL":
                found[texts[0], texts[1]] = None
            elif opcode.name == "MEMOIZE":
                memo[len(memo)] = texts[1]
            elif opcode.name in ("BINPUT", "LONG_BINPUT"):
                memo[argument] = texts[1]
            elif opcode.name in ("BINGET", "LONG_BINGET"):
                texts = [texts[1], memo.get(argument, "")]
            elif isinstance(argument, str):
                texts = [texts[1], argument]
    except Exception as error:
        raise pickle.UnpicklingError(
            f"load: expected a well-formed checkpoint, got one with an error: {str(error)[:400]}"
        ) from error
    return list(found)


MAP_PRIVATE = _mmap.MAP_PRIVATE
MAP_SHARED = _mmap.MAP_SHARED


def get_default_mmap_options() -> int:
    """How `load` with mmap=True maps files: mmap.MAP_PRIVATE, where what the program writes to
    tensors stays in the program, or mmap.MAP_SHARED, where it goes to the file."""
    return config.load.mmap_flags or MAP_PRIVATE


class set_default_mmap_options:  # noqa: N801  a function that is also a context
    """Set what `get_default_mmap_options` says: for good, or for the length of a `with` block."""

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "set_default_mmap_options: expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, got "
                f"{flags!r}"
            )
        self.prev = get_default_mmap_options()
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        """Set already."""

    def __exit__(self, *exception: Any) -> None:
        config.load.mmap_flags = self.prev


class skip_data:  # noqa: N801  a context
    """In the block, `save` writes zeros in place of the elements of tensors, to be written into the
    file later, and `load` leaves the elements of tensors as the memory happens to be.
    `materialize_fake_tensors` is kept: tensors without elements are saved as such."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before, ZipStorages.skipping = ZipStorages.skipping, True

    def __exit__(self, *exception: Any) -> None:
        ZipStorages.skipping = self._before


class LoadEndianness(enum.Enum):
    """The byte order of a file."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> Optional[LoadEndianness]:
    """The byte order of files that do not say it; None is that of the machine."""
    return config.load.endianness


def set_default_load_endianness(endianness: Optional[LoadEndianness]) -> None:
    """Set the byte order of files that do not say it."""
    if not isinstance(endianness, (LoadEndianness, type(None))):
        raise TypeError(
            "set_default_load_endianness: expected a LoadEndianness or None, got "
            f"{type(endianness).__name__}"
        )
    config.load.endianness = endianness


def get_crc32_options() -> bool:
    """The switch of set_crc32_options(), on at first."""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether files need checksums. Kept: they have them in any case."""
    config.save.compute_crc32 = compute_crc32


class SourceChangeWarning(Warning):
    """The code of a class is another than when it was saved."""


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple, error_if_malformed: bool = True
) -> bool:
    """Whether the version of a module, `a.b.c`, is at least a tuple of numbers. For a version that
    cannot be compared RuntimeError, or without `error_if_malformed` a warning and True."""
    parts = module.__version__.split(".")
    try:
        found = tuple(type(want)(part) for want, part in zip(req_version_tuple, parts))
        return found >= tuple(req_version_tuple)
    except (TypeError, ValueError) as error:
        message = (
            f"check_module_version_greater_or_equal: expected a version of {module.__name__} to "
            f"compare with {req_version_tuple}, got {module.__version__!r}"
        )
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(message, stacklevel=2)
        return True


_PLACES = (
    "StorageType default_restore_location location_tag mkdtemp normalize_storage_type "
    "register_package storage_to_tensor_type validate_cuda_device validate_hpu_device"
).split()


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise _names.missing(__name__, name)
    from treadle.serialization import _locations

    return getattr(_locations, name)
