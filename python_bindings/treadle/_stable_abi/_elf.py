"""The needs of a shared library, read from its file: libraries, and functions of theirs."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from typing import FrozenSet, Tuple

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_DYNAMIC, _DYNSYM = 6, 11  # types of sections
_NEEDED = 1  # the entry of a library in the section for the loader
_GLOBAL = 1  # how a symbol is bound


@dataclass(frozen=True)
class Needs:
    """`libraries` by their names, `functions` that the file calls and does not have, `provides`
    those that it has for others."""

    libraries: Tuple[str, ...] = ()
    functions: FrozenSet[str] = frozenset()
    provides: FrozenSet[str] = frozenset()


def needs_of(path: str) -> Needs:
    """The needs of a file; none of one that is no shared library for this machine."""
    with open(path, "rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return Needs()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            try:
                return _read(data)
            except (struct.error, ValueError, IndexError):
                return Needs()  # cut short: the system's loader says what is wrong


def _text(data: mmap.mmap, start: int) -> str:
    return data[start : data.find(b"\0", start)].decode("utf-8", "replace")


def _read(data: mmap.mmap) -> Needs:
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    libraries, functions, provides = [], set(), set()
    for section in sections:
        kind, offset, length, link, width = (section[i] for i in (1, 4, 5, 6, 9))
        if kind not in (_DYNAMIC, _DYNSYM):
            continue
        texts = sections[link][4]
        for at in range(offset, offset + length, width):
            if kind == _DYNAMIC:
                tag, value = struct.unpack_from("<QQ", data, at)
                if tag == _NEEDED:
                    libraries.append(_text(data, texts + value))
                continue
            name, info, _, home = struct.unpack_from("<IBBH", data, at)
            if home == 0 and info >> 4 == _GLOBAL:
                functions.add(_text(data, texts + name))
            elif home:
                provides.add(_text(data, texts + name))
    return Needs(tuple(libraries), frozenset(functions), frozenset(provides))
