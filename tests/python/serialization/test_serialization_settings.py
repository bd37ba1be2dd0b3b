"""Settings for saving and loading: places of storages, byte order, alignment, and files
without the elements."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import io
import mmap
import types
import zipfile

import pytest

import treadle
from treadle import serialization
from treadle.serialization import _locations
from treadle.serialization._storages import Placement
from treadle.utils.serialization import config


def saved(value):
    file = io.BytesIO()
    treadle.save(value, file)
    file.seek(0)
    return file


@pytest.fixture
def packages(monkeypatch):
    monkeypatch.setattr(_locations, "_packages", list(_locations._packages))
    monkeypatch.setattr(Placement, "restore", None)


def test_a_place_of_a_program(packages):
    kept = treadle.arange(3.0)
    asked = []

    def tag(storage):
        return "shelf" if storage.data_ptr() == kept.data_ptr() else None

    def restore(storage, location):
        asked.append(location)
        return storage.clone() if location == "shelf" else None

    serialization.register_package(5, tag, restore)
    assert serialization.location_tag(kept.untyped_storage()) == "shelf"
    file = saved([kept, treadle.ones(2)])
    found = treadle.load(file)
    assert [t.tolist() for t in found] == [[0.0, 1.0, 2.0], [1.0, 1.0]]
    assert asked == ["shelf", "cpu"]
    file.seek(0)
    assert treadle.load(file, map_location="cpu")[0].tolist() == [0.0, 1.0, 2.0]


def test_places_without_a_program():
    storage = treadle.ones(2).untyped_storage()
    assert serialization.location_tag(storage) == "cpu"
    assert serialization.default_restore_location(storage, "cpu") is storage
    with pytest.raises(RuntimeError, match="which is not there"):
        serialization.default_restore_location(storage, "cuda:7")
    with pytest.raises(RuntimeError) as caught:
        serialization.validate_hpu_device("hpu:1")
    assert str(caught.value) == (
        "load: expected one of 0 hpu devices, got 'hpu:1'; give map_location='cpu' to load its "
        "tensors on the CPU"
    )


def test_files_without_elements():
    with serialization.skip_data():
        file = saved({"a": treadle.ones(3)})
    assert treadle.load(file)["a"].tolist() == [0.0, 0.0, 0.0]
    file = saved({"a": treadle.ones(2, 3)})
    with serialization.skip_data():
        assert treadle.load(file)["a"].shape == (2, 3)
    file.seek(0)
    assert treadle.load(file)["a"].sum() == 6


@pytest.mark.parametrize("order", [None, "NATIVE", "LITTLE", "BIG"])
def test_the_byte_order_of_files_that_do_not_say_it(order):
    file = io.BytesIO()
    numbers = treadle.tensor([1, 256], dtype=treadle.int16)
    treadle.save(numbers, file, _disable_byteorder_record=True)
    file.seek(0)
    wanted = None if order is None else serialization.LoadEndianness[order]
    serialization.set_default_load_endianness(wanted)
    try:
        assert serialization.get_default_load_endianness() is wanted
        found = treadle.load(file).tolist()
    finally:
        serialization.set_default_load_endianness(None)
    assert found == ([256, 1] if order == "BIG" else [1, 256])
    with pytest.raises(TypeError) as caught:
        serialization.set_default_load_endianness("big")
    assert str(caught.value) == (
        "set_default_load_endianness: expected a LoadEndianness or None, got str"
    )


def test_alignment_and_maps(monkeypatch, tmp_path):
    monkeypatch.setattr(config.save, "storage_alignment", 4096)
    path = tmp_path / "x.pt"
    treadle.save(treadle.arange(5.0), path)
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("archive/data/0")
        header = archive.fp
        header.seek(info.header_offset + 26)
        name, extra = (int.from_bytes(header.read(2), "little") for _ in range(2))
        assert (info.header_offset + 30 + name + extra) % 4096 == 0
    monkeypatch.setattr(config.load, "mmap", True)
    assert treadle.load(path).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        assert config.load.mmap_flags == mmap.MAP_SHARED
        treadle.load(path)[0] = 9
    assert config.load.mmap_flags == mmap.MAP_PRIVATE
    assert treadle.load(path)[0] == 9


def test_checksums_are_there_in_any_case():
    serialization.set_crc32_options(False)
    try:
        assert serialization.get_crc32_options() is False
        assert zipfile.ZipFile(saved(treadle.ones(2))).testzip() is None
    finally:
        serialization.set_crc32_options(True)


def test_classes_of_storages():
    assert repr(serialization.StorageType("LongStorage")) == "StorageType(dtype=treadle.int64)"
    assert serialization.normalize_storage_type(treadle.FloatStorage) is treadle.FloatStorage
    kind = serialization.storage_to_tensor_type(treadle.HalfStorage(2))
    assert kind is treadle.HalfTensor
    with serialization.mkdtemp() as folder:
        with open(f"{folder}/x", "w") as file:
            file.write("x")
    with pytest.raises(FileNotFoundError):
        open(f"{folder}/x")


def test_versions_of_modules():
    module = types.SimpleNamespace(__name__="mine", __version__="1.12.3+x")
    at_least = serialization.check_module_version_greater_or_equal
    assert at_least(module, (1, 9)) and not at_least(module, (1, 13))
    with pytest.raises(RuntimeError) as caught:
        at_least(module, (1, 12, 3))
    message = (
        "check_module_version_greater_or_equal: expected a version of mine to compare with "
        "(1, 12, 3), got '1.12.3+x'"
    )
    assert str(caught.value) == message
    with pytest.warns(UserWarning, match="to compare with"):
        assert at_least(module, (1, 12, 3), error_if_malformed=False)
