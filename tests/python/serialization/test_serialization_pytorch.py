"""Checkpoints between PyTorch and here: files that PyTorch 2.9.1 wrote (tests/data/checkpoints, see
generate.py there) load exactly, and what is saved here has PyTorch's pickles, byte for byte."""

# SPDX-License-Identifier: Apache-2.0

import io
import json
import pathlib
import pickle
import pickletools
import struct
import sys
import zipfile

import numpy as np
import pytest

import treadle
from source_tree import DATA
from treadle import nn
from treadle._names import pytorch_paths

HERE = DATA / "checkpoints"
sys.path.insert(0, str(HERE))
from describe import describe  # noqa: E402  shared with generate.py

# A test of its own says what is in these.
UNDESCRIBED = ("compressed", "quantized")
EXPECTED = json.loads((HERE / "expected.json").read_text())
FILES = sorted(
    path.name for path in HERE.glob("*.pt") if not path.name.startswith(("refused", *UNDESCRIBED))
)


def load(path, **kwargs):
    name = pathlib.Path(path).name
    kwargs.setdefault("weights_only", not name.startswith("whole"))
    if name == "gpu.pt":
        kwargs.setdefault("map_location", "cpu")
    return treadle.load(path, **kwargs)


def described(value):
    if isinstance(value, dict) and "activation" in value:
        value = {key: item for key, item in value.items() if key != "activation"}
    return json.loads(json.dumps(describe(value, treadle)))


def case_of(name):
    return name.partition(".")[0]


def pickle_in(file):
    """The pickle of a checkpoint in the zip format."""
    with zipfile.ZipFile(file) as zipped:
        (name,) = (name for name in zipped.namelist() if name.endswith("/data.pkl"))
        return zipped.read(name)


# ---- theirs here ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_file_of_pytorch(name):
    assert described(load(HERE / name)) == EXPECTED[case_of(name)]


@pytest.mark.parametrize("name", [name for name in FILES if ".old" not in name])
def test_mapped_file_of_pytorch(name):
    assert described(load(HERE / name, mmap=True)) == EXPECTED[case_of(name)]


@pytest.mark.parametrize("name", FILES)
def test_file_object(name):
    content = (HERE / name).read_bytes()
    assert described(load_bytes(name, content)) == EXPECTED[case_of(name)]


def load_bytes(name, content):
    return treadle.load(
        io.BytesIO(content),
        weights_only=not name.startswith("whole"),
        map_location="cpu" if name == "gpu.pt" else None,
    )


@pytest.mark.parametrize(
    "name, text",
    [
        ("nested", "a nested tensor"),
    ],
)
def test_what_does_not_exist_here_is_named(name, text):
    for weights_only in (True, False):
        with pytest.raises(pickle.UnpicklingError, match=text):
            treadle.load(HERE / f"refused_{name}.pt", weights_only=weights_only)


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_quantized_tensor(weights_only):
    loaded = treadle.load(HERE / "quantized.pt", weights_only=weights_only)
    assert loaded.dtype == treadle.quint8 and loaded.int_repr().tolist() == [10, 10]
    assert (loaded.q_scale(), loaded.q_zero_point()) == (0.1, 0)


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_tensor_by_rows(weights_only):
    loaded = treadle.load(HERE / "compressed.pt", weights_only=weights_only)
    assert loaded.layout is treadle.sparse_csr
    assert loaded.to_dense().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("name", ["whole_layers.pt", "whole_layers.old.pt"])
def test_a_whole_network_computes(name):
    net = load(HERE / name).eval()
    image = treadle.arange(16.0).reshape(1, 1, 4, 4)
    np.testing.assert_allclose(net(image).tolist(), EXPECTED["forward"], rtol=1e-5, atol=1e-6)


def test_functions_in_a_checkpoint_are_those_here():
    activations = load(HERE / "whole_data.pt")["activation"]
    assert activations == [treadle.relu, nn.functional.relu, nn.functional.gelu]


def test_an_optimiser_goes_on_from_pytorch():
    state = load(HERE / "adam.pt")["optimizer"]
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Linear(8, 2))
    optimizer = treadle.optim.Adam(
        [{"params": net[0].parameters(), "lr": 1.0}, {"params": net[1].parameters()}], amsgrad=True
    )
    optimizer.load_state_dict(state)
    again = optimizer.state_dict()
    for index, entries in state["state"].items():
        for name, value in entries.items():
            assert treadle.equal(again["state"][index][name], value)
    assert [g["lr"] for g in again["param_groups"]] == [g["lr"] for g in state["param_groups"]]


@pytest.mark.parametrize(
    "where", ["cpu", treadle.device("cpu"), {"cuda:0": "cpu", "cuda:1": "cpu"}]
)
def test_tensors_of_gpus_go_where_they_are_told(where):
    assert described(treadle.load(HERE / "gpu.pt", map_location=where)) == EXPECTED["gpu"]


def test_map_location_is_asked_about_every_storage():
    asked = []

    def place(storage, location):
        asked.append((storage.tolist(), location))
        return storage.cpu()

    assert described(treadle.load(HERE / "gpu.pt", map_location=place)) == EXPECTED["gpu"]
    assert asked == [([0, 1, 2], "cuda:0"), ([0, 1, 2, 3], "cuda:1")]


def test_a_device_that_is_not_there():
    for where in (None, lambda storage, location: None, {"cuda:1": "cpu"}):
        with pytest.raises(RuntimeError, match="the device 'cuda:0'.*map_location='cpu'"):
            treadle.load(HERE / "gpu.pt", map_location=where)

    def fail(storage, location):
        raise KeyError(location)

    with pytest.raises(KeyError, match="cuda:0"):
        treadle.load(HERE / "gpu.pt", map_location=fail)


def with_swapped_numbers(content, width):
    """A checkpoint of one storage as a big-endian machine writes it."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("byteorder"):
                data = b"big"
            elif name.endswith("data/0"):
                data = np.frombuffer(data, f"u{width}").byteswap().tobytes()
            new.writestr(name, data)
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "dtype, width",
    [
        ("float32", 4),
        ("int16", 2),
        ("float64", 8),
        ("complex64", 4),
        ("complex128", 8),
        ("bool", 1),
    ],
)
def test_big_endian_file(dtype, width):
    value = treadle.tensor([0, 1, 1, 0]).to(getattr(treadle, dtype))
    file = io.BytesIO()
    treadle.save(value, file)
    assert treadle.equal(treadle.load(with_swapped_numbers(file.getvalue(), width)), value)


# ---- ours there ----------------------------------------------------------------------------------

# All whose objects have the same identities after loading as in the program that saved them.
SAME_PICKLES = ["adam", "dtypes", "extremes", "meta", "parameters", "sgd", "shapes", "shared",
                "sparse", "whole_layers", "whole_sequence_layers"]  # fmt: skip


@pytest.mark.parametrize("case", SAME_PICKLES)
def test_pickles_are_those_of_pytorch(case):
    """A file of PyTorch's, loaded and saved again: the same bytes, so PyTorch reads them."""
    file = io.BytesIO()
    treadle.save(load(HERE / f"{case}.pt"), file)
    assert pickle_in(file) == pickle_in(HERE / f"{case}.pt")


def old_parts(content):
    """The pickles of a file in the old format as instructions, and the rest."""
    file, parts = io.BytesIO(content), []
    for _ in range(5):
        parts.append([(op.name, value) for op, value, _ in pickletools.genops(file)])
    return parts, file.read()


def names_in(instructions):
    return [value for name, value in instructions if name == "GLOBAL"]


@pytest.mark.parametrize("case", ["old_dtypes", "shapes", "shared", "parameters"])
def test_old_format_is_that_of_pytorch(case):
    path = HERE / f"{case}.old.pt"
    file = io.BytesIO()
    treadle.save(load(path), file, _use_new_zipfile_serialization=False)
    ours, theirs = old_parts(file.getvalue()), old_parts(path.read_bytes())
    assert ours[0][:3] == theirs[0][:3]
    assert names_in(ours[0][3]) == names_in(theirs[0][3])
    assert {name for name, _ in ours[0][3]} <= {name for name, _ in theirs[0][3]} | {"BINGET"}
    # PyTorch's keys of storages are addresses, so their order is another.
    assert len(ours[0][4]) == len(theirs[0][4]) and len(ours[1]) == len(theirs[1])
    assert described(load_bytes("", file.getvalue())) == EXPECTED[case]


def test_several_in_one_old_file():
    file = io.BytesIO()
    for value in (treadle.ones(2), {"a": 1}, treadle.zeros(3)):
        treadle.save(value, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert treadle.load(file).tolist() == [1, 1]
    assert treadle.load(file) == {"a": 1}
    assert treadle.load(file).tolist() == [0, 0, 0]


def test_members_lie_as_pytorch_wants_them(tmp_path):
    """Stored, with a correct checksum, at multiples of 64 bytes, one for each storage."""
    path = tmp_path / "net.pt"
    base = treadle.arange(12)
    treadle.save({"a": base, "b": base[3:], "c": treadle.ones(2)}, path)
    content = path.read_bytes()
    with zipfile.ZipFile(path) as zipped:
        assert zipped.testzip() is None
        members = {info.filename: info for info in zipped.infolist()}
        storages = [name for name in members if "/data/" in name]
        assert storages == ["archive/data/0", "archive/data/1"]
        for name, info in members.items():
            assert info.compress_type == zipfile.ZIP_STORED
            lengths = struct.unpack(
                "<2H", content[info.header_offset + 26 : info.header_offset + 30]
            )
            assert (info.header_offset + 30 + sum(lengths)) % 64 == 0, name
        assert zipped.read("archive/byteorder") == b"little"
        assert zipped.read("archive/version") == b"3\n"


def test_byte_order_may_be_left_out():
    file = io.BytesIO()
    treadle.save(treadle.ones(2), file, _disable_byteorder_record=True)
    assert not any(name.endswith("byteorder") for name in zipfile.ZipFile(file).namelist())
    file.seek(0)
    assert treadle.load(file).tolist() == [1, 1]


def test_layers_have_the_paths_of_pytorch():
    """Every class that is public here is known by the path that PyTorch's files have."""
    table = {
        name
        for paths in (pytorch_paths._CLASSES["nn"],)
        for names in paths.values()
        for name in names.split()
    }
    layers = [
        name
        for name in nn.__all__
        if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), nn.Module)
    ]
    assert len(layers) > 100 and set(layers) <= table
    for name in layers:
        path = pytorch_paths.path_in_files(getattr(nn, name), name)
        assert pytorch_paths.class_named(f"{path}.{name}") is getattr(nn, name)
