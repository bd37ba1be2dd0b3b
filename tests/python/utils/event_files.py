"""Reads event files: records with their checksums, and messages field by field. Written from the
formats alone, so that it shares nothing with what it checks."""

# SPDX-License-Identifier: Apache-2.0

import struct
import zlib

import numpy as np


def crc32c(data):
    """CRC-32C, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8) & 0xFFFFFFFF


def records(content, check=True):
    """The contents of a file's records."""
    place, found = 0, []
    while place < len(content):
        (length,) = struct.unpack_from("<Q", content, place)
        body = content[place + 12 : place + 12 + length]
        assert len(body) == length
        if check:
            assert struct.unpack_from("<I", content, place + 8)[0] == masked(
                content[place : place + 8]
            )
            assert struct.unpack_from("<I", content, place + 12 + length)[0] == masked(body)
        found.append(body)
        place += 16 + length
    return found


def _varint(data, place):
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def fields(data):
    """The fields of a message: lists of values by number."""
    found, place = {}, 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(data, place)
        elif kind == 1:
            value, place = struct.unpack_from("<d", data, place)[0], place + 8
        elif kind == 5:
            value, place = struct.unpack_from("<f", data, place)[0], place + 4
        else:
            assert kind == 2
            length, place = _varint(data, place)
            value, place = data[place : place + length], place + length
            assert len(value) == length
        found.setdefault(key >> 3, []).append(value)
    return found


def one(message, *path):
    """The single value at the end of a path of field numbers."""
    for number in path[:-1]:
        (inner,) = message[number]
        message = fields(inner)
    (value,) = message[path[-1]]
    return value


def text(message, *path):
    return one(message, *path).decode("utf-8")


def packed(data, form):
    return list(struct.unpack(f"<{len(data) // struct.calcsize(form)}{form}", data))


def events(path, check=True):
    """The events of a file, as messages."""
    return [fields(record) for record in records(path.read_bytes(), check)]


def values(path, check=True):
    """The summaries in a file: (tag, step, value)."""
    found = []
    for event in events(path, check):
        for summary in event.get(5, []):
            for value in fields(summary)[1]:
                value = fields(value)
                found.append((text(value, 1), event.get(2, [0])[0], value))
    return found


def picture(png):
    """A PNG file whose rows are not filtered, as an array."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    place, data = 8, b""
    while place < len(png):
        length, kind = struct.unpack_from(">I4s", png, place)
        body = png[place + 8 : place + 8 + length]
        assert struct.unpack_from(">I", png, place + 8 + length)[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
            assert depth == 8 and body[10:] == b"\0\0\0"
        elif kind == b"IDAT":
            data += body
        place += 12 + length
    channels = {0: 1, 2: 3, 6: 4}[colour]
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * channels)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, channels)
