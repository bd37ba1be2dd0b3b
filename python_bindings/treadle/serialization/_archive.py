"""The zip file around a checkpoint: `archive/data.pkl`, `archive/data/0`, ..., `archive/version`.

Members are stored, never compressed, and start at multiples of 64 bytes, so that a storage can be
used where it lies in a mapped file. The reader believes no number in the file before it has checked
it against the file's size.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import mmap
import os
import struct
import zipfile
from typing import Any, BinaryIO, Iterable, Optional, Union

_ALIGNMENT = 64
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_NAME = "archive"
_VERSION = b"3\n"


def looks_like_one(head: bytes) -> bool:
    """Whether a file that begins so may be a zip file."""
    return head[:4] == b"PK\x03\x04"


def write(
    file: BinaryIO,
    pickled: bytes,
    storages: Iterable[Any],
    byte_order: Optional[bytes] = b"little",
    alignment: int = _ALIGNMENT,
) -> None:
    """Write a checkpoint whose members start at multiples of `alignment`. Equal content gives equal
    bytes: no dates, no names of files."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        _add(archive, "data.pkl", pickled, alignment)
        if byte_order is not None:
            _add(archive, "byteorder", byte_order, alignment)
        for number, storage in enumerate(storages):
            _add(archive, f"data/{number}", storage, alignment)
        _add(archive, "version", _VERSION, alignment)


def _add(
    archive: zipfile.ZipFile, name: str, content: Union[bytes, memoryview], alignment: int
) -> None:
    info = zipfile.ZipInfo(f"{_NAME}/{name}", (1980, 1, 1, 0, 0, 0))
    info.file_size = len(content)
    begin = archive.fp.tell() + _LOCAL_HEADER.size + len(info.filename)  # type: ignore[union-attr]
    if len(content) * 1.05 > zipfile.ZIP64_LIMIT:
        begin += 20  # the sizes of such a member are written a second time, with 64 bits
    # A field of the header that readers skip fills the space up to the next multiple.
    padding = -(begin + 4) % alignment
    info.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
    with archive.open(info, "w") as member:
        member.write(content)


def _damaged(reason: str) -> RuntimeError:
    return RuntimeError(f"load: expected a checkpoint, got a damaged or truncated file ({reason})")


class Archive:
    """A checkpoint open for reading."""

    def __init__(self, file: BinaryIO, use_mmap: bool, shared: bool) -> None:
        self._size = file.seek(0, os.SEEK_END)
        try:
            self._zip = zipfile.ZipFile(file)
            self._members = {info.filename: info for info in self._zip.infolist()}
        except (
            zipfile.BadZipFile,
            struct.error,
            ValueError,
            OverflowError,
            EOFError,
            NotImplementedError,
        ) as error:
            raise _damaged(str(error)) from error
        self._check_members()
        self._map: Optional[memoryview] = None
        if use_mmap:
            # With private pages the program may write to its tensors, and the file stays as it is.
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            self._map = memoryview(mmap.mmap(file.fileno(), 0, access=access))

    def _check_members(self) -> None:
        total = 0
        for info in self._members.values():
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 0x1:
                raise RuntimeError(
                    "load: expected stored members, got a compressed or encrypted "
                    f"{info.filename[:80]!r}"
                )
            if info.compress_size != info.file_size or not 0 <= info.header_offset < self._size:
                raise _damaged(f"member {info.filename[:80]!r} does not fit into the file")
            total += info.file_size
        if total > self._size:
            raise _damaged("its members are larger than the file")
        pickles = [
            name for name in self._members if name.count("/") == 1 and name.endswith("/data.pkl")
        ]
        if len(pickles) != 1:
            raise RuntimeError(
                "load: expected a checkpoint with one data.pkl, got a zip file without"
            )
        self._prefix = pickles[0][: -len("data.pkl")]
        if self._prefix + "constants.pkl" in self._members:
            raise RuntimeError(
                "load: expected a checkpoint, got a compiled program (an archive with code)"
            )

    def has(self, name: str) -> bool:
        """Whether there is a member of that name."""
        return self._prefix + name in self._members

    def size(self, name: str) -> int:
        """How many bytes a member has."""
        return self._member(name).file_size

    def _member(self, name: str) -> zipfile.ZipInfo:
        info = self._members.get(self._prefix + name)
        if info is None:
            raise _damaged(f"{name[:80]!r} is missing")
        return info

    def read(self, name: str) -> bytearray:
        """The content of a member; its checksum is checked."""
        info = self._member(name)
        content = bytearray(info.file_size)
        view, done = memoryview(content), 0
        try:
            with self._zip.open(info) as member:
                while done < len(content):
                    count = member.readinto(view[done:])  # type: ignore[attr-defined]
                    if not count:
                        raise _damaged(f"{name[:80]!r} ends early")
                    done += count
                member.read(1)  # reaching the end is what makes zipfile compare the checksum
        except (
            zipfile.BadZipFile,
            struct.error,
            EOFError,
            ValueError,
            NotImplementedError,
            OverflowError,
        ) as error:
            raise _damaged(str(error)) from error
        return content

    def view(self, name: str) -> Union[bytearray, memoryview]:
        """The content of a member, in the mapped file if there is one."""
        if self._map is None:
            return self.read(name)
        info = self._member(name)
        header = self._map[info.header_offset : info.header_offset + _LOCAL_HEADER.size]
        if len(header) < _LOCAL_HEADER.size:
            raise _damaged(f"{name[:80]!r} ends early")
        fields = _LOCAL_HEADER.unpack(header)
        begin = info.header_offset + _LOCAL_HEADER.size + fields[-2] + fields[-1]
        content = self._map[begin : begin + info.file_size]
        if fields[0] != b"PK\x03\x04" or len(content) != info.file_size:
            raise _damaged(f"{name[:80]!r} does not fit into the file")
        # Other writers may not have aligned it for its elements.
        return content if begin % _ALIGNMENT == 0 else bytearray(content)
