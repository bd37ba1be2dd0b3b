"""Protocol buffers on the wire, as far as event files need them: a message is a run of fields, each
a number with a type, and a value.

    message(integer(1, 5), text(2, "abc"))
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import struct
from typing import Iterable

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def varint(value: int) -> bytes:
    """An integer in groups of seven bits; negative ones as 64-bit two's complement."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _key(field: int, kind: int) -> bytes:
    return varint(field << 3 | kind)


def integer(field: int, value: int) -> bytes:
    """An integer, boolean or enumeration. Zero, the default, is left out."""
    return _key(field, _VARINT) + varint(int(value)) if value else b""


def double(field: int, value: float) -> bytes:
    """A number of 64 bits."""
    return _key(field, _FIXED64) + struct.pack("<d", value)


def single(field: int, value: float) -> bytes:
    """A number of 32 bits; what does not fit becomes infinite."""
    try:
        packed = struct.pack("<f", value)
    except OverflowError:
        packed = struct.pack("<f", float("inf") if value > 0 else float("-inf"))
    return _key(field, _FIXED32) + packed


def data(field: int, value: bytes) -> bytes:
    """Bytes, or a message inside this one."""
    return _key(field, _BYTES) + varint(len(value)) + value


def text(field: int, value: str) -> bytes:
    """Text."""
    return data(field, value.encode("utf-8"))


def doubles(field: int, values: Iterable[float]) -> bytes:
    """A list of numbers of 64 bits."""
    values = list(values)
    return data(field, struct.pack(f"<{len(values)}d", *values)) if values else b""


def singles(field: int, values: Iterable[float]) -> bytes:
    """A list of numbers of 32 bits."""
    values = list(values)
    return data(field, struct.pack(f"<{len(values)}f", *values)) if values else b""


def entry(field: int, key: str, value: bytes) -> bytes:
    """One pair of a map from text to messages."""
    return data(field, text(1, key) + data(2, value))


def message(*fields: bytes) -> bytes:
    """Fields, put together."""
    return b"".join(fields)
