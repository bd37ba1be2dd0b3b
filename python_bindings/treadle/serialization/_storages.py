"""The storages that a checkpoint refers to: each is read once, put where `map_location` says, and
shared by the tensors over it.

A storage is a tensor of one dimension here: of its element type, or of bytes.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import struct
import sys
from typing import Any, Callable, Optional, Union

from treadle import _C
from treadle._C import Tensor
from treadle._rebuild import base_from_buffer
from treadle.utils.serialization import config

MapLocation = Union[None, str, _C.device, dict, Callable]


def location_of(device: _C.device) -> str:
    """How a file says that a storage was on a device: by the tag of its backend, else its name."""
    if device.type not in _C._backends():
        return str(device)
    return f"{_C._backend_facts(device.type)['storage_tag']}:{device.index}"


def _device_at(location: str) -> Any:
    """The device that a file means."""
    tag, _, index = location.partition(":")
    for name in _C._backends():
        if _C._backend_facts(name)["storage_tag"] == tag:
            return _C.device(f"{name}:{index}" if index else name)
    return location


class Placement:
    """Where storages go, by the place that the file says they were in."""

    # The places of storages that a program registered: see _locations.
    restore: Optional[Callable[[Tensor, str], Tensor]] = None

    def __init__(self, map_location: MapLocation) -> None:
        self._where = map_location

    def place(self, storage: Tensor, location: str) -> Tensor:
        """The storage in its place."""
        where = self._where
        if isinstance(where, dict):
            where = where.get(location)
        elif callable(where) and not isinstance(where, _C.device):
            placed = where(storage, location)
            if placed is not None:
                return placed if isinstance(placed, Tensor) else storage
            where = None
        if self.restore is not None and (where is None or isinstance(where, str)):
            return self.restore(storage, location if where is None else where)
        if where is None:
            where = _device_at(location)
            if location != "cpu" and not _exists(where):
                raise RuntimeError(
                    f"load: expected the device {location[:40]!r} of the checkpoint, which is not "
                    "there; give map_location='cpu' to load its tensors on the CPU"
                )
        target = _C.device(where)
        return storage if target.type == "cpu" else storage.to(target)


def _exists(location: Any) -> bool:
    try:
        _C.empty((0,), device=location)
    except Exception:
        return False
    return True


class _Known:
    """The storages of one file that were asked for so far."""

    def __init__(self) -> None:
        self._storages: dict[str, Tensor] = {}

    def get(self, dtype: _C.dtype, key: str, numel: int, make: Callable[[], Tensor]) -> Tensor:
        """The storage of that key, made at the first time it is asked for."""
        known = self._storages.get(key)
        if known is None:
            known = self._storages[key] = make()
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


class ZipStorages:
    """Those of the zip format: a member each."""

    skipping = False  # in a block of serialization.skip_data

    def __init__(self, archive: Any, placement: Placement) -> None:
        self._archive = archive
        self._placement = placement
        self._known = _Known()
        named = archive.has("byteorder")
        order = bytes(archive.read("byteorder")) if named else _order_without_name()
        if order not in (b"little", b"big"):
            raise ValueError(f"load: expected the byte order little or big, got {order[:20]!r}")
        self._swapped = order == b"big"

    def load(
        self, dtype: Optional[_C.dtype], key: str, location: str, numel: int, view: Any
    ) -> Tensor:
        """All elements of the storage `key`."""
        element = dtype or _C.uint8
        return self._known.get(
            element, key, numel, lambda: self._placement.place(self._read(element, key), location)
        )

    def _read(self, dtype: _C.dtype, key: str) -> Tensor:
        if self.skipping:
            numel = self._archive.size(f"data/{key}") // dtype.itemsize
            return _C.empty((numel,), dtype=dtype)
        content = self._archive.view(f"data/{key}")
        whole = len(content) // dtype.itemsize * dtype.itemsize
        storage = base_from_buffer(content[:whole] if whole < len(content) else content, dtype)
        return _with_swapped_bytes(storage) if self._swapped else storage


def _order_without_name() -> bytes:
    given = config.load.endianness
    is_native = given is None or given.name == "NATIVE"
    return (sys.byteorder if is_native else given.name.lower()).encode()  # type: ignore[union-attr]


def _with_swapped_bytes(storage: Tensor) -> Tensor:
    parts = 2 if storage.dtype.is_complex else 1
    width = storage.dtype.itemsize // parts
    if width == 1 or storage.numel() == 0:
        return storage
    numbers = storage.view(_C.uint8).reshape((-1, width))
    return numbers.flip(1).reshape((-1,)).view(storage.dtype)


class LegacyStorages:
    """Those of the old format, which come after the pickle: they are made empty, and filled in the
    end."""

    def __init__(self, size: int, placement: Placement) -> None:
        self._left = size  # of the file: what has not been given to a storage yet
        self._placement = placement
        self._known = _Known()
        self._made: dict[str, Tensor] = {}

    def load(
        self, dtype: Optional[_C.dtype], key: str, location: str, numel: int, view: Any
    ) -> Tensor:
        """The storage `key`, or the part of it that `view` names: (key, offset, number of
        elements)."""
        element = dtype or _C.uint8
        whole = self._known.get(
            element, key, numel, lambda: self._make(element, key, location, numel)
        )
        if view is None:
            return whole
        if type(view) is not tuple or len(view) != 3 or any(type(n) is not int for n in view[1:]):
            raise RuntimeError("load: expected a view as a key and two numbers, got something else")
        _, offset, length = view
        if not 0 <= offset <= offset + length <= numel:
            raise RuntimeError(
                f"load: expected a view inside its {numel} elements, got {length} from {offset}"
            )
        return whole[offset : offset + length]

    def _make(self, dtype: _C.dtype, key: str, location: str, numel: int) -> Tensor:
        self._left -= numel * dtype.itemsize
        if self._left < 0:
            raise RuntimeError(
                f"load: expected storages no larger than the file, got {numel} elements of {dtype}"
            )
        storage = _C.zeros((numel,), dtype=dtype)
        self._made[key] = placed = self._placement.place(storage, location)
        return placed

    def fill(self, reader: Any, keys: Any) -> None:
        """Read the elements: of each storage of `keys` their number and then all of them."""
        if type(keys) is not list or any(type(key) is not str for key in keys):
            raise RuntimeError("load: expected a list of storages, got something else")
        for key in keys:
            storage = self._made.pop(key, None)
            if storage is None:
                raise RuntimeError(
                    f"load: expected a storage that a tensor is over, got {key[:80]!r}"
                )
            (numel,) = struct.unpack("<q", reader.take(8))
            if numel != storage.numel():
                raise RuntimeError(
                    f"load: expected storage {key[:80]!r} to hold {storage.numel()} elements, got "
                    f"{numel}"
                )
            content = bytearray(reader.take(numel * storage.dtype.itemsize))
            if numel:
                storage.copy_(base_from_buffer(content, storage.dtype))
        if self._made:
            raise RuntimeError("load: expected the elements of every storage, got only some")
