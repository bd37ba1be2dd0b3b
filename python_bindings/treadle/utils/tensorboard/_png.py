"""Pictures as PNG: a header, compressed rows and an end, each with its length and a checksum."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import struct
import zlib

import numpy as np

_COLOURS = {1: 0, 3: 2, 4: 6}  # by the number of channels: grey, red-green-blue, with opacity


def _chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def encode(picture: np.ndarray) -> bytes:
    """A PNG file of an array of shape (height, width, channels) of uint8, with 1, 3 or 4
    channels."""
    height, width, channels = picture.shape
    if channels not in _COLOURS:
        raise ValueError(f"add_image: expected 1, 3 or 4 channels, got {channels}")
    head = struct.pack(">2I5B", width, height, 8, _COLOURS[channels], 0, 0, 0)
    # Each row begins with how it was filtered before compression: not at all.
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = picture.reshape(height, width * channels)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", head)
        + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6))
        + _chunk(b"IEND", b"")
    )
