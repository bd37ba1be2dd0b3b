"""The file format of PyTorch before 1.6: five pickles one after another, then the storages.

The pickles are a magic number, a version, facts about the machine, the object, and the list of
storages; of each storage follow the number of its elements and the elements.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import pickle
import struct
from typing import Any, BinaryIO, Callable, Iterable

from treadle.serialization._reader import CheckpointUnpickler, Reader
from treadle.serialization._storages import LegacyStorages, Placement

_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_MACHINE = {
    "protocol_version": _VERSION,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}
_TAR_MAGIC = b"ustar"
_TAR_MAGIC_PLACE = 257


def write(file: BinaryIO, pickled: bytes, storages: Iterable[tuple], protocol: int) -> None:
    """Write a checkpoint in the old format. `storages`: of each the key, the number of elements and
    the bytes."""
    for head in (_MAGIC_NUMBER, _VERSION, _MACHINE):
        file.write(pickle.dumps(head, protocol))
    file.write(pickled)
    ordered = sorted(storages, key=lambda storage: storage[0])
    file.write(pickle.dumps([key for key, _, _ in ordered], protocol))
    for _, numel, content in ordered:
        file.write(struct.pack("<q", numel))
        file.write(content)


def looks_like_one(head: bytes) -> bool:
    """Whether a file that begins so may have this format."""
    return head[:1] == b"\x80"


def read(data: Any, find: Callable, placement: Placement, encoding: str) -> tuple[Any, int]:
    """The object that `data` (bytes or a mapped file) begins with, and the place behind it."""
    if data[_TAR_MAGIC_PLACE : _TAR_MAGIC_PLACE + len(_TAR_MAGIC)] == _TAR_MAGIC:
        raise RuntimeError(
            "load: expected a checkpoint, got a tar file; checkpoints of PyTorch before 0.1.10 are "
            "not read"
        )
    reader = Reader(data)

    def next_pickle(load_storage: Any = None) -> Any:
        return CheckpointUnpickler(reader, find, load_storage, encoding).load()

    magic = next_pickle()
    if type(magic) is not int or magic != _MAGIC_NUMBER:
        raise RuntimeError(
            "load: expected a checkpoint, got a bare pickle; such files are not read, because the "
            "general way to read them may run code"
        )
    version = next_pickle()
    if type(version) is not int or version != _VERSION:
        raise RuntimeError(f"load: expected version {_VERSION} of the old format, got another")
    machine = next_pickle()
    if type(machine) is not dict or machine.get("little_endian", True) is not True:
        raise RuntimeError("load: expected a file of a little-endian machine, got another")
    storages = LegacyStorages(len(data), placement)
    value = next_pickle(storages.load)
    storages.fill(reader, next_pickle())
    return value, reader.place
