"""Saving and loading: `treadle.save(net.state_dict(), "net.pt")`, `treadle.load("net.pt")`.

Files have PyTorch's format and go both ways. Loading never runs code: it builds data from a list of
allowed names (`add_safe_globals` adds to it). Saving replaces a file in one step, so that a killed
program leaves the old one.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Optional, Union

import treadle
from treadle import Tensor
from treadle._atomic_file import replacing
from treadle._checkpoint_names import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from treadle._checkpoint_reader import CheckpointUnpickler
from treadle._checkpoint_writer import CheckpointPickler
from treadle._rebuild import base_from_buffer

if TYPE_CHECKING:
    from treadle._checkpoint_archive import Archive

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "load",
    "safe_globals",
    "save",
]

DEFAULT_PROTOCOL = 2

_File = Union[str, os.PathLike, BinaryIO]
_MapLocation = Union[None, str, "treadle.device", dict, Callable]


def save(
    obj: Any,
    f: _File,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object with all its tensors to a file. Tensors that share memory share it again when
    loaded."""
    # Imported at its first use: it needs zipfile, which takes a while to import.
    from treadle._checkpoint_archive import write as write_archive

    pickled = io.BytesIO()
    pickler = CheckpointPickler(pickled, pickle_protocol)
    pickler.dump(obj)
    storages = [_bytes_of(storage) for storage in pickler.storages]
    if isinstance(f, (str, os.PathLike)):
        with replacing(os.fspath(f)) as file:
            write_archive(file, pickled.getvalue(), storages)
    elif hasattr(f, "write"):
        write_archive(f, pickled.getvalue(), storages)
    else:
        raise TypeError(f"save: expected a path or a file open for writing, got {type(f).__name__}")


def _bytes_of(storage: Any) -> Any:
    if storage.nbytes() == 0:
        return b""
    return memoryview(storage).cast("B")


def load(
    f: _File,
    map_location: _MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool = True,
    mmap: Optional[bool] = None,
    **pickle_load_args: Any,
) -> Any:
    """Read an object that `save` (or PyTorch's) wrote.

    No code of the file runs, whatever `weights_only` says. `map_location` says where tensors go: a
    device, a dictionary from the device in the file to another, or a function of a tensor and the
    device in the file. With `mmap` the elements stay in the file until they are used.
    """
    from treadle._checkpoint_archive import Archive

    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load(Archive(file, bool(mmap)), map_location)
    if not (hasattr(f, "read") and hasattr(f, "seek")):
        raise TypeError(f"load: expected a path or a file open for reading, got {type(f).__name__}")
    if mmap:
        raise ValueError("load: expected a path where mmap=True, got a file object")
    return _load(Archive(f, False), map_location)


def _load(archive: Archive, map_location: _MapLocation) -> Any:
    if archive.has("byteorder") and archive.read("byteorder") != b"little":
        raise RuntimeError(
            "load: expected a checkpoint with little-endian numbers, got another byte order"
        )
    storages = _Storages(archive, map_location)
    return CheckpointUnpickler(bytes(archive.read("data.pkl")), storages.load).load()


class _Storages:
    """The storages of one file, each read once: tensors over the same one share memory."""

    def __init__(self, archive: Archive, map_location: _MapLocation) -> None:
        self._archive = archive
        self._map_location = map_location
        self._loaded: dict[str, Tensor] = {}

    def load(self, dtype: treadle.dtype, key: str, location: str, numel: int) -> Tensor:
        """All elements of the storage `key`, as a tensor of one dimension."""
        known = self._loaded.get(key)
        if known is None:
            known = self._loaded[key] = self._read(dtype, key, location)
        if known.dtype != dtype:
            raise RuntimeError(
                f"load: expected storage {key[:80]!r} to hold {known.dtype}, got a tensor of "
                f"{dtype} over it"
            )
        if numel != known.numel():
            raise RuntimeError(
                f"load: expected storage {key[:80]!r} to hold {numel} elements, got {known.numel()}"
            )
        return known

    def _read(self, dtype: treadle.dtype, key: str, location: str) -> Tensor:
        name = f"data/{key}"
        if self._archive.size(name) % dtype.itemsize:
            raise RuntimeError(
                f"load: expected storage {key[:80]!r} to hold whole elements of {dtype}, got "
                f"{self._archive.size(name)} bytes"
            )
        return self._placed(base_from_buffer(self._archive.view(name), dtype), location)

    def _placed(self, tensor: Tensor, location: str) -> Tensor:
        where = self._map_location
        if isinstance(where, dict):
            where = where.get(location)
        elif callable(where) and not isinstance(where, treadle.device):
            placed = where(tensor, location)
            if placed is not None:
                return placed if isinstance(placed, Tensor) else tensor
            where = None
        if where is None:
            where = location
            if location != "cpu" and not _exists(location):
                raise RuntimeError(
                    f"load: expected the device {location[:40]!r} of the checkpoint, which is not "
                    "there; give map_location='cpu' to load its tensors on the CPU"
                )
        target = treadle.device(where)
        return tensor if target.type == "cpu" else tensor.to(target)


def _exists(location: str) -> bool:
    try:
        treadle.empty((0,), device=location)
    except Exception:
        return False
    return True
