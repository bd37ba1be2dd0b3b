"""safetensors: files of the package `safetensors` 0.8 (tests/data/checkpoints), what it writes byte
for byte, reading in part, shared memory, and what is refused."""

# SPDX-License-Identifier: Apache-2.0

import json
import os
import struct
import sys

import pytest

import treadle
from source_tree import DATA
from treadle import nn
from treadle.utils import safetensors
from treadle.utils.safetensors import SafetensorError

HERE = DATA / "checkpoints"
sys.path.insert(0, str(HERE))
from describe import describe  # noqa: E402  shared with generate.py

THEIRS = HERE / "tensors.safetensors"
EXPECTED = json.loads((HERE / "expected.json").read_text())["safetensors"]


def content(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def one(dtype="F32", shape=(2,), offsets=(0, 8), **more):
    return {"a": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}}


# ---- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "load", [safetensors.load_file, lambda p: safetensors.load(p.read_bytes())]
)
def test_file_of_the_package(load):
    tensors = load(THEIRS)
    assert json.loads(json.dumps(describe(dict(sorted(tensors.items())), treadle))) == EXPECTED


def test_the_same_bytes_are_written(tmp_path):
    tensors = safetensors.load_file(THEIRS)
    metadata = {"epoch": "3", "by": "ü"}
    assert safetensors.save(tensors, metadata) == THEIRS.read_bytes()
    path = tmp_path / "again.safetensors"
    safetensors.save_file(tensors, path, metadata)
    assert path.read_bytes() == THEIRS.read_bytes() and os.listdir(tmp_path) == [path.name]


def test_reading_in_part():
    with safetensors.safe_open(THEIRS, framework="pt", device="cpu") as file:
        assert file.metadata() == {"epoch": "3", "by": "ü"}
        assert file.keys() == sorted(file.offset_keys())
        assert set(file.get_tensors()) == set(file.keys())
        assert file.get_tensor("scalar").tolist() == 2.5
        part = file.get_slice("float32")
        assert part.get_shape() == [2, 3] and part.get_dtype() == "F32"
        assert part[:, 1:].tolist() == [[1, 2], [4, 5]] and part[0].tolist() == [0, 1, 2]
        with pytest.raises(SafetensorError, match="does not contain tensor nope"):
            file.get_tensor("nope")
    with pytest.raises(ValueError):
        file.get_tensor("scalar")
    with pytest.raises(FileNotFoundError):
        safetensors.safe_open("/nowhere/at/all", "pt")
    with pytest.raises(SafetensorError, match="framework = 'pt'"):
        safetensors.safe_open(THEIRS, "jax")


def test_to_another_device():
    tensors = safetensors.load_file(THEIRS, device="meta")
    assert {tensor.device.type for tensor in tensors.values()} == {"meta"}


def test_no_tensors_at_all():
    assert safetensors.save({}) == b"\x08" + bytes(7) + b"{}      "
    assert safetensors.load(content({})) == {}
    assert safetensors.load(content(b" {} ")) == {}
    assert safetensors.load(content(one(more=1), bytes(8)))["a"].tolist() == [0, 0]


@pytest.mark.parametrize(
    "data, text",
    [
        (b"", "at least 8 bytes"),
        (struct.pack("<Q", 2**40) + b"{}", "a header inside the file"),
        (content(b"{"), "a header in JSON"),
        (content(b"[" * 100_000), "a header in JSON"),
        (content(b"\xff"), "a header in JSON"),
        (content(b"[]"), "a dictionary as header"),
        (content({"__metadata__": {"a": 1}}), "text as metadata"),
        (content({"a": 3}), "a description of 'a'"),
        (content(one(dtype="F4"), bytes(8)), "an element type that exists here for 'a'"),
        (content(one(shape=[-2]), bytes(8)), "a list of sizes"),
        (content(one(shape=[True, 2]), bytes(8)), "a list of sizes"),
        (content(one(shape=[3]), bytes(8)), "12 bytes for 'a' of shape"),
        (content(one(shape=[2**62, 2**62, 0]), bytes(8)), "0 bytes for 'a'"),
        (content(one(offsets=[8, 0]), bytes(8)), "got -8"),
        (content(one(offsets=[0]), bytes(8)), "two numbers"),
        (content(one(offsets=[8, 16]), bytes(16)), "side by side"),
        (content({**one(), "b": one()["a"]}, bytes(8)), "side by side"),
        (content(one(), bytes(9)), "tensors of 9 bytes in all"),
        (content(one(), bytes(7)), "tensors of 7 bytes in all"),
        (content(json.dumps(one())[:-1].encode() + b"," + json.dumps(one())[1:].encode(), bytes(8)),
         "each name once"),
    ],
)  # fmt: skip
def test_what_is_no_such_file(data, text, tmp_path):
    with pytest.raises(SafetensorError, match=text):
        safetensors.load(data)
    path = tmp_path / "bad"
    path.write_bytes(data)
    with pytest.raises(SafetensorError, match=text):
        safetensors.load_file(path)


# ---- writing -------------------------------------------------------------------------------------


def test_what_is_not_written(tmp_path):
    base = treadle.ones(4)
    bad = {
        ValueError: [{"a": 1}, [base], {"a": treadle.ones((2, 3)).t()}],
        TypeError: [{1: base}],
        KeyError: [{"a": base.to(treadle.complex128)}],
        RuntimeError: [{"a": base, "b": base[1:]}, {"a": base[:3], "b": base[2:]}],
    }
    path = tmp_path / "x"
    for error, values in bad.items():
        for value in values:
            with pytest.raises(error, match="expected"):
                safetensors.save_file(value, path)
    with pytest.raises(TypeError, match="metadata"):
        safetensors.save_file({"a": base}, path, {"a": 1})
    assert os.listdir(tmp_path) == []
    parts = safetensors.load(safetensors.save({"a": base[:2], "b": base[2:]}))
    assert parts["a"].tolist() == parts["b"].tolist() == [1, 1]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.second = nn.Linear(2, 2)
        self.second.weight = self.first.weight


def test_networks_that_share_parameters(tmp_path):
    path = tmp_path / "net.safetensors"
    net, again = Tied(), Tied()
    with pytest.raises(RuntimeError, match="first.weight.*second.weight"):
        safetensors.save_file(net.state_dict(), path)
    safetensors.save_model(net, path)
    with safetensors.safe_open(path, "pt") as file:
        assert file.metadata() == {"second.weight": "first.weight"}
        assert file.keys() == ["first.bias", "first.weight", "second.bias"]
    assert safetensors.load_model(again, path) == (set(), [])
    for a, b in zip(net.parameters(), again.parameters()):
        assert treadle.equal(a, b)


def test_networks_that_do_not_fit(tmp_path):
    path = tmp_path / "net.safetensors"
    safetensors.save_model(nn.Linear(2, 2), path)
    with pytest.raises(RuntimeError, match='Missing.*"extra"|Unexpected'):
        safetensors.load_model(nn.Linear(2, 2, bias=False), path)
    missing, unexpected = safetensors.load_model(nn.Linear(2, 2, bias=False), path, strict=False)
    assert missing == set() and unexpected == ["bias"]
