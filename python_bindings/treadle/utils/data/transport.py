"""Carrying batches from a worker to the main process.

A batch is pickled with its large buffers (the elements of tensors and NumPy arrays) left out of the
pickle. Small ones follow it through the pipe; large ones lie in a piece of memory that both
processes map, which has no name in the file system and so goes away with the last process that
holds it. The main process uses it where it lies.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import io
import mmap
import os
import pickle
import struct
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

from treadle import _C
from treadle._C import Tensor
from treadle._rebuild import _rebuild_from_bytes, _require_leaf, reduce_bytes, with_attributes

_ALIGNMENT = 64
_SMALL = 1 << 16
_HEADER = struct.Struct("<?QQ")  # whether memory is shared, its size, the number of buffers


class _Pickler(pickle.Pickler):
    """Leaves the elements of tensors to the buffers."""

    def reducer_override(self, obj: Any) -> Any:
        # A subclass that says itself how it is pickled is left to do so.
        if not isinstance(obj, Tensor) or type(obj).__reduce_ex__ is not Tensor.__reduce_ex__:
            return NotImplemented
        _require_leaf(obj)
        # The parts of a tensor of another layout come here by themselves.
        if obj.is_meta or obj.layout != _C.strided:
            return NotImplemented
        data, (*arguments, _, stride) = reduce_bytes(obj)
        return with_attributes(
            obj, _rebuild_from_bytes, (pickle.PickleBuffer(data), *arguments, "cpu", stride)
        )


def dumps(obj: Any) -> tuple[bytes, list[memoryview]]:
    """The pickle of an object and the buffers it refers to."""
    file = io.BytesIO()
    buffers: list[Any] = []
    _Pickler(file, 5, buffer_callback=buffers.append).dump(obj)
    return file.getvalue(), [buffer.raw() for buffer in buffers]


def _places(sizes: list[int]) -> tuple[list[int], int]:
    places, end = [], 0
    for size in sizes:
        places.append(end)
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return places, end


def send(connection: Connection, obj: Any, receiver: int) -> None:
    """Send an object to the process `receiver`. Nothing is sent if it cannot be pickled."""
    pickled, buffers = dumps(obj)
    sizes = [buffer.nbytes for buffer in buffers]
    places, total = _places(sizes)
    shared = total >= _SMALL and hasattr(os, "memfd_create")
    header = _HEADER.pack(shared, total, len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)
    if not shared:
        connection.send_bytes(header)
        connection.send_bytes(pickled)
        for buffer in buffers:
            connection.send_bytes(buffer)
        return
    descriptor = os.memfd_create("treadle-batch")
    try:
        os.ftruncate(descriptor, total)
        with mmap.mmap(descriptor, total) as memory:
            for place, buffer in zip(places, buffers):
                memory[place : place + buffer.nbytes] = buffer
        connection.send_bytes(header)
        connection.send_bytes(pickled)
        reduction.send_handle(connection, descriptor, receiver)
    finally:
        os.close(descriptor)


def receive(connection: Connection) -> Any:
    """The next object. The tensors in it may be written to."""
    header = connection.recv_bytes()
    shared, total, count = _HEADER.unpack_from(header)
    sizes = list(struct.unpack_from(f"<{count}Q", header, _HEADER.size))
    pickled = connection.recv_bytes()
    if not shared:
        return pickle.loads(pickled, buffers=[bytearray(connection.recv_bytes()) for _ in sizes])
    descriptor = reduction.recv_handle(connection)
    try:
        memory = memoryview(mmap.mmap(descriptor, total))
    finally:
        os.close(descriptor)
    places, _ = _places(sizes)
    return pickle.loads(pickled, buffers=[memory[p : p + size] for p, size in zip(places, sizes)])
