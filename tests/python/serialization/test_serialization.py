"""Saving and loading: what comes back, and what a saved file is."""

# SPDX-License-Identifier: Apache-2.0

import collections
import copy
import io
import os
import pickle
import pickletools
import struct
import zipfile

import pytest

import treadle
from treadle import nn

DTYPES = [
    treadle.bool,
    treadle.uint8,
    treadle.int8,
    treadle.int16,
    treadle.int32,
    treadle.int64,
    treadle.float16,
    treadle.bfloat16,
    treadle.float32,
    treadle.float64,
    treadle.complex64,
    treadle.complex128,
]


def through(obj, **kwargs):
    """Saved and loaded again."""
    file = io.BytesIO()
    treadle.save(obj, file)
    file.seek(0)
    return treadle.load(file, **kwargs)


# ---- what comes back -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_dtype(dtype):
    tensor = treadle.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    loaded = through(tensor)
    assert loaded.dtype == dtype and loaded.shape == (2, 3) and loaded.tolist() == tensor.tolist()


def test_containers_and_plain_values():
    value = {
        "numbers": [1, -1, 2**40, 2**100, 1.5, True, None, 1 + 2j],
        "text": "päö",
        "bytes": b"\x00\xff",
        "tuple": (1, (2, 3), ()),
        "set": {1, 2},
        "ordered": collections.OrderedDict([("b", 1), ("a", 2)]),
        "counts": collections.Counter("aab"),
        "default": collections.defaultdict(list, {1: [2]}),
        7: treadle.float32,
        "size": treadle.Size((2, 3)),
        "device": treadle.device("cpu"),
    }
    loaded = through(value)
    assert loaded == value
    assert [type(loaded[key]) for key in value] == [type(value[key]) for key in value]
    assert loaded["default"].default_factory is list


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol(protocol):
    file = io.BytesIO()
    value = {
        "a": treadle.arange(3),
        "b": b"xyz" * 100,
        "c": {1, "two"},
        "d": frozenset((1,)),
        "e": 2**70,
    }
    treadle.save(value, file, pickle_protocol=protocol)
    file.seek(0)
    loaded = treadle.load(file)
    assert loaded["a"].tolist() == [0, 1, 2]
    assert {key: loaded[key] for key in "bcde"} == {key: value[key] for key in "bcde"}


def test_shared_memory_and_views():
    base = treadle.arange(12).to(treadle.float32)
    value = {
        "base": base,
        "row": base.reshape((3, 4))[1],
        "turned": base.reshape((3, 4)).transpose(0, 1),
    }
    loaded = through(value)
    assert loaded["turned"].stride() == (1, 4) and loaded["row"].storage_offset() == 4
    loaded["base"][5] = 100.0
    assert loaded["row"].tolist() == [4, 100, 6, 7] and loaded["turned"][1, 1].item() == 100
    assert loaded["base"].data_ptr() == loaded["turned"].data_ptr()


def test_same_object_stays_the_same():
    tensor = treadle.ones(2)
    one, other = through([tensor, tensor])
    assert one is other


def test_empty_tensors():
    loaded = through([treadle.zeros((0, 3)), treadle.zeros((2, 0), dtype=treadle.int64)])
    assert [tuple(tensor.shape) for tensor in loaded] == [(0, 3), (2, 0)]


def test_parameters_and_gradients_wanted():
    parameter = nn.Parameter(treadle.ones(2), requires_grad=False)
    loaded = through(
        [nn.Parameter(treadle.ones(2)), parameter, treadle.ones(2, requires_grad=True)]
    )
    assert [type(tensor) for tensor in loaded] == [nn.Parameter, nn.Parameter, treadle.Tensor]
    assert [tensor.requires_grad for tensor in loaded] == [True, False, True]
    assert all(tensor.is_leaf for tensor in loaded)
    with treadle.no_grad():
        loaded[0].add_(1)


def test_state_dict_of_a_network():
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    state = net.state_dict()
    loaded = through(state)
    assert list(loaded) == list(state) and loaded._metadata == state._metadata
    other = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    other.load_state_dict(loaded)
    assert all(treadle.equal(a, b) for a, b in zip(net.parameters(), other.parameters()))


def test_map_location():
    tensor = treadle.ones(2)
    for where in ("cpu", treadle.device("cpu"), {"cpu": "cpu"}, lambda storage, place: storage):
        assert through(tensor, map_location=where).tolist() == [1, 1]
    assert through(tensor, map_location="meta").device.type == "meta"


def test_pickle_and_copy():
    net = nn.Linear(2, 2)
    again = pickle.loads(pickle.dumps(net))
    assert treadle.equal(again.weight, net.weight) and isinstance(again.weight, nn.Parameter)
    tensor = treadle.arange(6).reshape((2, 3)).transpose(0, 1)
    assert pickle.loads(pickle.dumps(tensor)).tolist() == tensor.tolist()
    for value in (treadle.float32, treadle.device("cpu"), treadle.Size((1, 2)), treadle.strided):
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value


# ---- files ---------------------------------------------------------------------------------------


def test_path_and_layout(tmp_path):
    path = tmp_path / "net.pt"
    treadle.save({"a": treadle.ones(3), "b": treadle.zeros(2)}, path)
    with zipfile.ZipFile(path) as zipped:
        assert zipped.testzip() is None
        assert set(zipped.namelist()) == {
            "archive/data.pkl",
            "archive/byteorder",
            "archive/data/0",
            "archive/data/1",
            "archive/version",
        }
        assert zipped.read("archive/data/0") == struct.pack("<3f", 1, 1, 1)
        pickled = zipped.read("archive/data.pkl")
    names = {
        argument for opcode, argument, _ in pickletools.genops(pickled) if opcode.name == "GLOBAL"
    }
    assert names == {
        "torch._utils _rebuild_tensor_v2",
        "torch FloatStorage",
        "collections OrderedDict",
    }


def test_mmap(tmp_path):
    path = tmp_path / "big.pt"
    treadle.save([treadle.arange(1000), treadle.ones(5)], str(path))
    numbers, ones = treadle.load(path, mmap=True)
    assert numbers.tolist() == list(range(1000)) and ones.tolist() == [1] * 5
    numbers[0] = 99  # stays in this process
    assert treadle.load(path)[0][0].item() == 0


def test_equal_content_gives_equal_bytes(tmp_path):
    value = {"a": treadle.ones(3)}
    treadle.save(value, tmp_path / "a.pt")
    treadle.save(value, tmp_path / "b.pt")
    assert (tmp_path / "a.pt").read_bytes() == (tmp_path / "b.pt").read_bytes()


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "net.pt"
    treadle.save(1, path)
    with pytest.raises(Exception):
        treadle.save(lambda: 0, path)
    assert treadle.load(path) == 1 and os.listdir(tmp_path) == ["net.pt"]


def test_a_save_that_is_cut_off_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "net.pt"
    treadle.save(1, path)

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("treadle.serialization._archive._add", full)
    with pytest.raises(OSError, match="No space left"):
        treadle.save(2, path)
    monkeypatch.undo()
    assert treadle.load(path) == 1 and os.listdir(tmp_path) == ["net.pt"]


def test_permissions_are_kept(tmp_path):
    path = tmp_path / "net.pt"
    treadle.save(1, path)
    os.chmod(path, 0o640)
    treadle.save(2, path)
    assert os.stat(path).st_mode & 0o777 == 0o640


def test_links_are_followed(tmp_path):
    real, link = tmp_path / "real.pt", tmp_path / "link.pt"
    treadle.save(1, real)
    link.symlink_to(real)
    treadle.save(2, link)
    assert link.is_symlink() and treadle.load(real) == 2


# ---- arguments -----------------------------------------------------------------------------------


def test_arguments_that_are_not_files():
    with pytest.raises(
        TypeError, match="load: expected a path or a file open for reading, got int"
    ):
        treadle.load(3)
    with pytest.raises(
        TypeError, match="save: expected a path or a file open for writing, got int"
    ):
        treadle.save(1, 3)
    with pytest.raises(FileNotFoundError):
        treadle.load("/nowhere/at/all.pt")
