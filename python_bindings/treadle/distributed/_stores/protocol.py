"""The protocol of a TCPStore and its server.

Everything is in frames: four bytes with the length, then the content. A connection begins with a
greeting, in which both ends prove that they know the secret, where there is one:

    client: MAGIC, a random number C
    server: whether it has a secret, a random number S, HMAC(secret, "server" C S)
    client: HMAC(secret, "client" C S)
    server: b"welcome"

Neither the secret nor anything that can be used in another connection is sent. Then requests and
their replies follow, one at a time. Nothing is unpickled. A frame is bounded before memory is taken
for it: a greeting has 128 bytes at most, another frame MAX_FRAME.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from typing import List, Optional, Sequence, Tuple

from treadle.distributed._stores.table import Request

MAGIC = b"treadle store 1\n"
WELCOME = b"welcome"
MAX_GREETING = 128
MAX_FRAME = 1 << 28
NONCE = 32
LENGTH = struct.Struct("!I")
ANSWERED, LATE, REFUSED = range(3)

_COUNT = struct.Struct("!I")
_HEAD = struct.Struct("!dI")  # seconds to wait, number of keys


def secret_of(given: Optional[str]) -> bytes:
    """The secret: the one given, or that of TREADLE_STORE_SECRET. Empty if there is none."""
    return (os.environ.get("TREADLE_STORE_SECRET", "") if given is None else given).encode()


def proof(secret: bytes, side: bytes, client: bytes, server: bytes) -> bytes:
    """The proof that a side knows the secret; empty without a secret."""
    return hmac.digest(secret, side + client + server, hashlib.sha256) if secret else b""


def frame(content: bytes) -> bytes:
    """The content with its length before it."""
    return LENGTH.pack(len(content)) + content


def _pack(parts: Sequence[bytes]) -> bytes:
    return _COUNT.pack(len(parts)) + b"".join(_COUNT.pack(len(part)) + part for part in parts)


def _unpack(content: bytes, at: int) -> List[bytes]:
    (count,) = _COUNT.unpack_from(content, at)
    at += _COUNT.size
    if count * _COUNT.size > len(content) - at:
        raise ValueError("expected a number of parts that the frame can hold")
    parts = []
    for _ in range(count):
        (length,) = _COUNT.unpack_from(content, at)
        at += _COUNT.size
        if length > len(content) - at:
            raise ValueError("expected a part within the frame")
        parts.append(content[at : at + length])
        at += length
    if at != len(content):
        raise ValueError("expected nothing after the parts")
    return parts


def request_bytes(request: Request, seconds: float) -> bytes:
    """A request, and how long its answer may take."""
    keys = [key.encode() for key in request.keys]
    parts = [request.action.encode(), *keys, *request.values]
    return _HEAD.pack(seconds, len(keys)) + _pack(parts)


def request_of(content: bytes) -> Tuple[Request, float]:
    """The other way. ValueError, struct.error for bytes that are no request."""
    seconds, keys = _HEAD.unpack_from(content)
    action, *parts = _unpack(content, _HEAD.size)
    if keys > len(parts) or not seconds >= 0:
        raise ValueError("expected as many parts as keys, and a time")
    names = tuple(part.decode() for part in parts[:keys])
    return Request(action.decode(), names, tuple(parts[keys:])), seconds


def reply_bytes(status: int, parts: Sequence[bytes]) -> bytes:
    """A reply: one of ANSWERED, LATE, REFUSED, and what belongs to it."""
    return bytes([status]) + _pack(parts)


def reply_of(content: bytes) -> Tuple[int, List[bytes]]:
    """The other way. ValueError, struct.error for bytes that are no reply."""
    return content[0], _unpack(content, 1)
