"""Storages: bytes that are made, cut, filled, copied, pickled and mapped from files; and the typed
ones of older programs."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import gc
import io
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import treadle
from treadle import TypedStorage, UntypedStorage


class Named(UntypedStorage):
    """A class of a program's own."""


def test_made_of_a_size_and_of_bytes() -> None:
    assert UntypedStorage().nbytes() == 0 and len(UntypedStorage(5)) == 5
    assert UntypedStorage([1, 2, 255]).tolist() == [1, 2, 255]
    assert UntypedStorage(b"ab").tolist() == [97, 98]
    assert UntypedStorage(7, device="meta").device.type == "meta"
    with pytest.raises(ValueError, match="UntypedStorage: expected a size >= 0, got -1"):
        UntypedStorage(-1)
    with pytest.raises(
        TypeError, match="expected a number of bytes or a sequence of them, got float"
    ):
        UntypedStorage(2.5)
    with pytest.raises(ValueError, match="byte must be in range"):
        UntypedStorage([256])
    with pytest.raises(TypeError, match="expected device to be a device or its name, got list"):
        UntypedStorage(1, device=[])
    assert UntypedStorage([1, 2], device="meta").nbytes() == 2


def test_elements_and_parts_share_memory() -> None:
    storage = UntypedStorage([1, 2, 3, 4])
    assert (storage[1], storage[-1], list(storage)) == (2, 4, [1, 2, 3, 4])
    part = storage[1:3]
    assert part.data_ptr() == storage.data_ptr() + 1 and part.nbytes() == 2
    part[0] = 9
    storage[2:] = 7
    assert storage.tolist() == [1, 9, 7, 7] and part.tolist() == [9, 7]
    assert len(storage[3:1]) == 0
    # The part keeps the memory.
    del storage
    gc.collect()
    assert part.fill_(300).tolist() == [44, 44]


def test_places_that_are_not_there() -> None:
    storage = UntypedStorage([1, 2])
    with pytest.raises(IndexError) as error:
        storage[2]
    assert str(error.value) == "storage: expected an index in a storage of 2 bytes, got 2"
    with pytest.raises(RuntimeError, match="expected a slice with a step of 1, got a step of 2"):
        storage[::2]
    with pytest.raises(TypeError, match="expected an int or a slice, got str"):
        storage["a"]
    with pytest.raises(RuntimeError, match="expected an int to write, got list"):
        storage[0] = [1]
    with pytest.raises(RuntimeError, match="copy_: expected a storage of 2 bytes, got one of 3"):
        storage.copy_(UntypedStorage(3))
    assert storage.tolist() == [1, 2]


def test_copies() -> None:
    storage = UntypedStorage([1, 2, 3, 4])
    for copied in (storage.clone(), copy.copy(storage), copy.deepcopy(storage)):
        assert copied.tolist() == storage.tolist() and copied != storage
    assert pickle.loads(pickle.dumps(storage)).tolist() == [1, 2, 3, 4]
    assert storage.cpu() is storage and storage.untyped() is storage
    assert storage.copy_(UntypedStorage([5, 6, 7, 8])).tolist() == [5, 6, 7, 8]
    assert storage.to("meta").device.type == "meta"
    x = treadle.arange(3)
    assert x.untyped_storage() == x[1:].untyped_storage()
    assert x.untyped_storage()._cdata == x[1:].untyped_storage()._cdata


def test_a_class_of_a_program() -> None:
    named = Named([1, 2])
    named.note = "mine"
    assert type(named) is Named and type(named.clone()) is Named and type(named.new()) is Named
    again = Named._over(treadle.arange(2, dtype=treadle.uint8).untyped_storage())
    assert type(again) is Named and again.tolist() == [0, 1]
    with pytest.raises(TypeError, match="_over: expected an UntypedStorage, got list"):
        Named._over([1])


def test_bytes_turned_around_and_types() -> None:
    storage = UntypedStorage([1, 2, 3, 4])
    storage.byteswap(treadle.int16)
    assert storage.tolist() == [2, 1, 4, 3]
    with pytest.raises(RuntimeError, match="byteswap: expected a multiple of 8 bytes for"):
        storage.byteswap(treadle.complex64)
    assert storage.float().tolist() == [2.0, 1.0, 4.0, 3.0]
    assert storage.float().dtype == treadle.float32
    assert (storage.element_size(), storage.get_device(), storage.is_cuda) == (1, -1, False)
    assert storage.type() == "torch.storage.UntypedStorage"
    assert str(UntypedStorage([1])) == (
        " 1\n[treadle.storage.UntypedStorage(device=cpu) of size 1]"
    )


def test_of_a_buffer() -> None:
    big = UntypedStorage.from_buffer(b"\1\2\3\4", "big", dtype=treadle.int16)
    assert big.tolist() == [2, 1, 4, 3]
    some = UntypedStorage.from_buffer(b"\1\2\3\4", dtype=treadle.uint8, count=2, offset=1)
    assert some.tolist() == [2, 3]
    with pytest.raises(TypeError, match="from_buffer: expected byte_order for elements of"):
        UntypedStorage.from_buffer(b"12", dtype=treadle.int16)
    with pytest.raises(ValueError, match="expected byte_order to be 'little' or 'big', got 'x'"):
        UntypedStorage.from_buffer(b"12", "x", dtype=treadle.int16)


def test_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(8)))
    own = UntypedStorage.from_file(path, shared=False, nbytes=4)
    own[0] = 77
    assert own.tolist() == [77, 1, 2, 3] and own.filename is None
    assert path.read_bytes() == bytes(range(8))
    shared = UntypedStorage.from_file(str(path), shared=True, nbytes=16)
    shared[1] = 88
    assert shared.filename == str(path)
    assert path.read_bytes() == bytes([0, 88, *range(2, 8)]) + bytes(8)
    del shared
    gc.collect()
    assert not treadle._tensor.untyped_storage._files
    assert len(UntypedStorage.from_file(path)) == 0
    with pytest.raises(RuntimeError) as short:
        UntypedStorage.from_file(path, shared=False, nbytes=17)
    assert str(short.value) == (
        f"from_file: expected a file of at least 17 bytes, got {path} of 16"
    )
    with pytest.raises(RuntimeError, match="expected a file that can be opened, got .*: No such"):
        UntypedStorage.from_file(tmp_path / "none", shared=False, nbytes=1)


def test_tensor_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    made = treadle.from_file(str(path), shared=True, size=3, dtype=treadle.int32)
    made.copy_(treadle.tensor([1, 2, 3]))
    assert treadle.from_file(str(path), size=3, dtype=treadle.int32).tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="from_file: expected the device cpu, got meta"):
        treadle.from_file(str(path), size=1, device="meta")


def test_typed() -> None:
    storage = TypedStorage([1.5, 2], dtype=treadle.float32)
    storage[1] = 4
    assert storage.tolist() == [1.5, 4.0] and storage[-2] == 1.5 and len(storage) == 2
    assert (storage.nbytes(), storage.element_size()) == (8, 4)
    assert storage.type() == "torch.FloatStorage"
    assert storage.pickle_storage_type() == "FloatStorage"
    assert treadle.FloatStorage.dtype == treadle.float32
    assert isinstance(storage, treadle.FloatStorage)
    assert not isinstance(storage, treadle.LongStorage)
    assert type(treadle.LongStorage([1, 2])) is TypedStorage
    assert treadle.LongStorage([1, 2]).double().tolist() == [1.0, 2.0]
    assert storage.type("torch.IntStorage").tolist() == [1, 4]
    over = TypedStorage(wrap_storage=UntypedStorage([1, 0, 2, 0]), dtype=treadle.int16)
    assert over.tolist() == [1, 2] and over.untyped().tolist() == [1, 0, 2, 0]
    assert storage == TypedStorage(wrap_storage=storage.untyped(), dtype=treadle.float32)
    assert storage != storage.clone()
    for copied in (storage.clone(), copy.deepcopy(storage), pickle.loads(pickle.dumps(storage))):
        assert copied.tolist() == [1.5, 4.0]
    with pytest.raises(RuntimeError, match="expected an int, as slices are those of untyped"):
        storage[0:1]
    with pytest.raises(RuntimeError, match="expected wrap_storage alone, got more beside it"):
        TypedStorage(3, wrap_storage=UntypedStorage(4), dtype=treadle.int8)
    with pytest.raises(TypeError, match="expected a size or a sequence of numbers, got str"):
        TypedStorage("a")


def test_tensors_over_storages() -> None:
    x = treadle.arange(3.0)
    storage = x[1:].storage()
    assert storage.tolist() == [0.0, 1.0, 2.0] and storage.data_ptr() == x.data_ptr()
    assert x.storage_type() is treadle.FloatStorage
    storage[0] = 5
    assert x.tolist() == [5.0, 1.0, 2.0]
    over = treadle.empty(0).set_(storage, 1, (2,), (1,))
    over[0] = 6
    assert x.tolist() == [5.0, 6.0, 2.0]
    assert treadle.FloatTensor(storage).data_ptr() == x.data_ptr()
    assert treadle.is_storage(storage) and treadle.is_storage(storage.untyped())
    assert not treadle.is_storage(x)
    assert treadle.asarray(storage.untyped()[4:8], dtype=treadle.uint8).view(
        treadle.float32
    ).tolist() == [6.0]


def test_saved_with_a_tensor() -> None:
    x = treadle.arange(3.0)
    file = io.BytesIO()
    treadle.save({"x": x, "storage": x.storage()}, file)
    file.seek(0)
    loaded: Any = treadle.load(file)
    assert loaded["x"].tolist() == [0.0, 1.0, 2.0] == list(loaded["storage"])


def test_memory_that_a_part_holds_is_not_resized() -> None:
    storage = UntypedStorage(4)
    part = storage[:2]
    with pytest.raises(RuntimeError, match="resize_"):
        storage.resize_(1 << 20)
    del part
    gc.collect()
    assert storage.resize_(8).nbytes() == 8


def test_devices_of_pytorch_are_objects() -> None:
    for name in ("mps", "xpu", "hpu", "mtia"):
        device = treadle.device(name)
        assert device.type == name and str(device) == name and device != treadle.device("cpu")
        assert not treadle.is_autocast_enabled(name)
    assert treadle.device("xpu:1").index == 1
    with pytest.raises(RuntimeError, match="expected a device that has memory, got mps"):
        treadle.zeros(2, device="mps")


def test_the_size_of_a_storage_is_that_of_its_memory_too() -> None:
    small, large = treadle.ones(1), treadle.ones(1001)
    for kind in ("storage", "untyped_storage"):
        sizes = [sys.getsizeof(getattr(x, kind)()) for x in (small, large)]
        assert sizes[1] - sizes[0] == 4000 and sizes[0] > 4


def test_storage_is_the_one_of_the_default_dtype() -> None:
    assert treadle.Storage is treadle.FloatStorage
    assert treadle.Storage([1, 2]).tolist() == [1.0, 2.0]
