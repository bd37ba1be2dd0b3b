"""Saving and loading: what comes back, files of other writers, damaged files, and hostile
pickles."""

import collections
import copy
import io
import os
import pickle
import pickletools
import random
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


def archive(pickled, members=(), compression=zipfile.ZIP_STORED):
    """A checkpoint with a pickle written by hand."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as zipped:
        zipped.writestr("archive/data.pkl", pickled)
        for name, content in dict(members).items():
            zipped.writestr(f"archive/{name}", content)
        zipped.writestr("archive/version", "3\n")
    file.seek(0)
    return file


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


def test_whole_modules_of_this_library():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.ModuleList([nn.Dropout(0.1)]))
    loaded = through(net)
    assert repr(loaded) == repr(net)
    x = treadle.ones((1, 2))
    assert treadle.equal(loaded[0](x), net[0](x))


class OwnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)


class Record:
    def __init__(self, value):
        self.value = value


def test_classes_of_the_user_are_asked_for():
    file = io.BytesIO()
    treadle.save([OwnNet(), Record(3)], file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="OwnNet, which checkpoints may not use"):
        treadle.load(file)
    file.seek(0)
    with treadle.serialization.safe_globals([OwnNet, Record]):
        assert treadle.serialization.get_safe_globals() == [OwnNet, Record]
        net, record = treadle.load(file)
    assert isinstance(net.layer, nn.Linear) and record.value == 3
    assert treadle.serialization.get_safe_globals() == []


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

    monkeypatch.setattr("treadle._checkpoint_archive._add", full)
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


# ---- not checkpoints -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content, text",
    [
        (b"", "got an empty file"),
        (b"hello world", "got a file that starts with b'hello wo'"),
        (pickle.dumps([1, 2]), "got a bare pickle"),
        (b"PK\x03\x04 and no more", "damaged or truncated"),
    ],
)
def test_not_a_checkpoint(content, text):
    with pytest.raises(RuntimeError, match=text):
        treadle.load(io.BytesIO(content))


def test_other_zip_files():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("readme.txt", "hello")
    file.seek(0)
    with pytest.raises(RuntimeError, match="one data.pkl"):
        treadle.load(file)
    with pytest.raises(RuntimeError, match="compressed"):
        treadle.load(archive(pickle.dumps([1] * 100, 2), compression=zipfile.ZIP_DEFLATED))


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


def whole_checkpoint():
    file = io.BytesIO()
    treadle.save({"a": treadle.arange(100), "b": nn.Linear(3, 3).state_dict(), "c": [1, "x"]}, file)
    return file.getvalue()


def test_truncated_anywhere():
    content = whole_checkpoint()
    for length in range(0, len(content), 7):
        with pytest.raises((RuntimeError, pickle.UnpicklingError)):
            treadle.load(io.BytesIO(content[:length]))


def test_damaged_anywhere():
    content = whole_checkpoint()
    rng = random.Random(0)
    for _ in range(1500):
        damaged = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            treadle.load(io.BytesIO(bytes(damaged)))
        except (RuntimeError, pickle.UnpicklingError):
            pass


def test_random_pickles():
    """Any bytes as a pickle: an exception or a value, nothing else."""
    with zipfile.ZipFile(io.BytesIO(whole_checkpoint())) as zipped:
        good = zipped.read("archive/data.pkl")
    rng = random.Random(1)
    opcodes = [opcode.code.encode("latin1") for opcode in pickletools.opcodes]
    for _ in range(3000):
        damaged = bytearray(good)
        for _ in range(rng.randint(1, 6)):
            place = rng.randrange(len(damaged))
            damaged[place : place + rng.randint(0, 3)] = rng.choice(opcodes)
        try:
            treadle.load(archive(bytes(damaged), {"data/0": b"\0" * 800}))
        except (RuntimeError, pickle.UnpicklingError):
            pass


# ---- hostile pickles -----------------------------------------------------------------------------

ran = []


class Bomb:
    """Its pickle calls a function."""

    def __init__(self, function, *args):
        self.call = function, args

    def __reduce__(self):
        return self.call


HOSTILE = {
    "os.system": pickle.dumps(Bomb(os.system, "exit 1"), 2),
    "eval": pickle.dumps(Bomb(eval, "ran.append(1)"), 2),
    "exec": pickle.dumps(Bomb(exec, "ran.append(1)"), 4),
    "getattr": pickle.dumps(Bomb(getattr, [], "append"), 2),
    "import": pickle.dumps(Bomb(__import__, "os"), 2),
    "append": pickle.dumps(Bomb(ran.append, 1), 4),
    "instance": b"(ios\nsystem\nS'exit 1'\n.",
    "object": b"\x80\x02cos\nsystem\n)o.",
    "dotted": b"\x80\x04\x8c\x05torch\x8c\x0fTensor.__init__\x93.",
    "private": b"\x80\x02ctorch._utils\nimportlib\n.",
    "extension": b"\x80\x02\x82\x01.",
    "memory": b"\x80\x02cbuiltins\nbytearray\nJ\xff\xff\xff\x7f\x85R.",
    "long text": b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fx.",
    "called data": b"\x80\x02]K\x01\x85R.",
    "called class": b"\x80\x02cbuiltins\nint\nK\x01\x85R.",
    "class state": b"\x80\x02ccollections\nOrderedDict\n}U\x04evilK\x01sb.",
    "function state": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n}U\x04evilK\x01sb.",
    "deep key": b"\x80\x02})" + b"\x85" * 300_000 + b"K\x01s.",
    "wide key": b"\x80\x02}" + b"K\x01\x85q\x00" + b"h\x00h\x00\x86q\x00" * 60 + b"h\x00K\x01s.",
    "deep set": b"\x80\x02cbuiltins\nset\n])" + b"\x85" * 300_000 + b"a\x85R.",
    "copies": b"\x80\x02cbuiltins\nlist\nq\x01]("
    + b"K\x01" * 20_000
    + b"eq\x02"
    + b"h\x01h\x02\x85R" * 20_000
    + b".",
    "empty": b"",
    "no stop": b"\x80\x02]",
    "stop at once": b".",
    "mark only": b"\x80\x02(.",
    "underflow": b"\x80\x02\x86.",
    "bad memo": b"\x80\x02h\x07.",
    "bad text": b"\x80\x02X\x02\x00\x00\x00\xff\xfe.",
    "unhashable": b"\x80\x02}]K\x01s.",
    "future protocol": b"\x80\x09.",
    "persistent number": b"\x80\x02K\x01Q.",
    "missing storage": b"\x80\x02(U\x07storagectorch\nFloatStorage\nU\x0899999999U\x03cpuK\x03tQ.",
    "path as storage": b"\x80\x02(U\x07storagectorch\nFloatStorage\nU\x0b../data.pkl"
    b"U\x03cpuK\x03tQ.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles(name):
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        treadle.load(archive(HOSTILE[name]))
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        treadle.load(archive(HOSTILE[name]), weights_only=False)
    assert ran == []


def tensor_pickle(size, stride, offset=0, numel=3, location="cpu", kind="FloatStorage"):
    """A tensor over a storage of three elements, with numbers of the attacker's choice."""

    class Writer(pickle._Pickler):
        def persistent_id(self, obj):
            if obj is storage:
                return ("storage", Name("torch", kind), "0", location, numel)
            return None

        def save_name(self, obj):
            self.write(b"c" + f"{obj.module}\n{obj.name}\n".encode())

    class Name:
        def __init__(self, module, name):
            self.module, self.name = module, name

        def __call__(self):
            raise TypeError

    class Call:
        def __reduce__(self):
            return Name("torch._utils", "_rebuild_tensor_v2"), (
                storage,
                offset,
                size,
                stride,
                False,
                None,
            )

    Writer.dispatch = dict(pickle._Pickler.dispatch)
    Writer.dispatch[Name] = Writer.save_name
    storage, file = object(), io.BytesIO()
    Writer(file, 2).dump(Call())
    return archive(file.getvalue(), {"data/0": struct.pack("<3f", 1, 2, 3)})


def test_tensor_written_by_hand():
    assert treadle.load(tensor_pickle((3,), (1,))).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "case",
    [
        {"size": (4,), "stride": (1,)},
        {"size": (3,), "stride": (2,)},
        {"size": (3,), "stride": (1,), "offset": 1},
        {"size": (3,), "stride": (1,), "offset": -1},
        {"size": (-3,), "stride": (1,)},
        {"size": (3,), "stride": (-1,)},
        {"size": (3,), "stride": (1, 1)},
        {"size": (2**62, 2**62), "stride": (0, 0)},
        {"size": (2**70,), "stride": (0,)},
        {"size": (3.0,), "stride": (1,)},
        {"size": "abc", "stride": (1,)},
        {"size": 3, "stride": 1},
        {"size": (3,), "stride": (1,), "numel": 100},
        {"size": (3,), "stride": (1,), "kind": "DoubleStorage"},
        {"size": (3,), "stride": (1,), "kind": "QuantumStorage"},
        {"size": (3,), "stride": (1,), "location": "cuda:0"},
        {"size": (3,), "stride": (1,), "location": "nowhere"},
    ],
    ids=str,
)
def test_tensors_outside_their_storage(case):
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        treadle.load(tensor_pickle(**case))
