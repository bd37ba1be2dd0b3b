"""CRC-32C, the checksum of event files, with NumPy: a file has no part longer than what one summary
takes, but an image or an embedding takes megabytes.

Long data are cut into pieces of equal length whose checksums are computed side by side. Checksums
are linear over XOR, so those of neighbours are joined by a table lookup for each byte of the first:
what that byte becomes when as many zeros follow as the second piece is long.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78
_PIECE = 1024


def _make_table() -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ _POLYNOMIAL, table >> 1).astype(np.uint32)
    return table


_TABLE = _make_table()
_LIST = _TABLE.tolist()


@functools.lru_cache(maxsize=1)
def _shift_tables() -> list[list[int]]:
    """For each byte of a register: what it becomes when _PIECE zeros follow."""
    registers = np.array([[b << (8 * place) for b in range(256)] for place in range(4)], np.uint32)
    for _ in range(_PIECE):
        registers = _TABLE[registers & 0xFF] ^ (registers >> 8)
    return registers.tolist()


def _bytewise(register: int, data: bytes) -> int:
    for byte in data:
        register = _LIST[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register


def crc32c(data: bytes) -> int:
    """The checksum of `data`."""
    register = 0xFFFFFFFF
    pieces = len(data) // _PIECE
    if pieces > 1:
        columns = np.frombuffer(data, np.uint8, pieces * _PIECE).reshape(pieces, _PIECE).T
        parts = np.zeros(pieces, np.uint32)
        for column in np.ascontiguousarray(columns):
            parts = _TABLE[(parts ^ column) & 0xFF] ^ (parts >> 8)
        a, b, c, d = _shift_tables()
        for part in parts.tolist():
            register = (
                a[register & 0xFF]
                ^ b[register >> 8 & 0xFF]
                ^ c[register >> 16 & 0xFF]
                ^ d[register >> 24]
                ^ part
            )
        data = data[pieces * _PIECE :]
    return _bytewise(register, data) ^ 0xFFFFFFFF


def masked_crc32c(data: bytes) -> int:
    """The checksum as it stands in files: turned and moved, so that a checksum of data with
    checksums in them is a good one too."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
