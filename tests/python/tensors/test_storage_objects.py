"""Objects of storages: one for each, with attributes and weak references; tensors over them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import gc
import weakref

import pytest

import treadle as torch


def test_one_object_stands_for_a_storage() -> None:
    x = torch.zeros(4)
    storage = x.untyped_storage()
    assert x[1:].untyped_storage() is storage
    storage.label = "weights"
    assert x.view(2, 2).untyped_storage().label == "weights"
    assert torch.zeros(4).untyped_storage() is not storage


def test_an_object_of_a_class_of_the_program_is_found_again() -> None:
    class Labelled(torch.UntypedStorage):
        pass

    storage = Labelled(8)
    assert torch.tensor(storage, dtype=torch.float32).untyped_storage() is storage


def test_a_weak_reference_ends_with_the_object() -> None:
    seen: list = []
    storage = torch.UntypedStorage(2)
    reference = weakref.ref(storage, seen.append)
    storage._fix_weakref()
    assert reference() is storage
    del storage
    assert reference() is None
    assert seen == [reference]


def test_a_cycle_through_an_attribute_is_collected() -> None:
    storage = torch.UntypedStorage(2)
    storage.loop = [storage]
    reference = weakref.ref(storage)
    del storage
    gc.collect()
    assert reference() is None


def test_a_tensor_lies_in_the_storage_it_is_made_of() -> None:
    floats = torch.arange(6.0)
    for storage in (floats.storage(), floats.untyped_storage()):
        made = torch.tensor(storage, dtype=torch.float32)
        assert made.data_ptr() == floats.data_ptr()
        assert made.tolist() == floats.tolist()
    assert torch.tensor(floats.storage()).dtype == torch.float32
    assert floats.new(floats.storage()).data_ptr() == floats.data_ptr()
    # Bytes without a dtype count as integers.
    assert torch.tensor(torch.UntypedStorage([1] + [0] * 7)).tolist() == [1]


def test_a_storage_of_another_dtype_is_refused() -> None:
    with pytest.raises(RuntimeError) as error:
        torch.tensor(torch.zeros(2).storage(), dtype=torch.float64)
    assert str(error.value) == (
        "tensor: expected a storage of dtype float64, or one of bytes, got one of dtype float32"
    )


def test_a_storage_of_meta_has_no_elements() -> None:
    words = "Not available for the 'meta' device, whose storages have no memory: an element"
    untyped = torch.UntypedStorage(4, device="meta")
    assert untyped.data_ptr() == 0
    for storage in (untyped, torch.TypedStorage(4, dtype=torch.float32, device="meta")):
        with pytest.raises(NotImplementedError) as error:
            storage[0]
        assert str(error.value) == words


def test_resizable_says_whether_somebody_holds_the_memory() -> None:
    x = torch.zeros(5)
    assert x.untyped_storage().resizable()
    array = x.numpy()
    assert not x.untyped_storage().resizable()
    assert not x.storage().resizable()
    del array


def test_set_makes_the_storage_as_long_as_the_geometry_asks() -> None:
    x = torch.zeros(3)
    storage = torch.arange(4.0).untyped_storage()
    x.set_(storage, 1, (2, 3), (3, 1))
    assert storage.nbytes() == 7 * 4
    assert x.shape == (2, 3)
    assert x[0].tolist() == [1, 2, 3]


def test_set_does_not_move_what_somebody_looks_at() -> None:
    source = torch.arange(4.0)
    array = source.numpy()
    with pytest.raises(RuntimeError, match="a storage that can be resized"):
        torch.zeros(3).set_(source.untyped_storage(), 0, (2, 3), (3, 1))
    assert array.tolist() == [0, 1, 2, 3]


def test_the_class_of_storages_follows_the_default_dtype() -> None:
    assert torch.Storage is torch.FloatStorage
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.Storage is torch.DoubleStorage
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_legacy_type_of_a_tensor_shares_its_memory() -> None:
    x = torch.arange(3.0)
    assert torch.FloatTensor(x).data_ptr() == x.data_ptr()
    assert torch.DoubleTensor(x).dtype == torch.float64
