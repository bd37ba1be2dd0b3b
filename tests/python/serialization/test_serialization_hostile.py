"""Files that must not load: damaged ones, hostile pickles, and 10,000 of every kind in a row, none
of which may run anything, leave anything behind, or take more memory or time than its length."""

# SPDX-License-Identifier: Apache-2.0

import io
import json
import os
import pathlib
import pickle
import pickletools
import random
import struct
import subprocess
import sys
import zipfile

import pytest

import treadle
from source_tree import SUPPORT
from treadle import nn

DECLARED = (RuntimeError, pickle.UnpicklingError, EOFError)


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


# ---- not checkpoints -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content, error, text",
    [
        (b"", EOFError, "got an empty file"),
        (b"hello world", pickle.UnpicklingError, "got a file that starts with b'hello wo'"),
        (pickle.dumps([1, 2]), RuntimeError, "got a bare pickle"),
        (b"PK\x03\x04 and no more", RuntimeError, "damaged or truncated"),
        (bytes([128]) + bytes(256) + b"ustar" + bytes(99), RuntimeError, "got a tar file"),
    ],
)
def test_not_a_checkpoint(content, error, text):
    with pytest.raises(error, match=text):
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


def test_compiled_programs():
    with pytest.raises(RuntimeError, match="an archive with code"):
        treadle.load(archive(pickle.dumps(1, 2), {"constants.pkl": b""}))


def whole_checkpoint():
    file = io.BytesIO()
    treadle.save({"a": treadle.arange(100), "b": nn.Linear(3, 3).state_dict(), "c": [1, "x"]}, file)
    return file.getvalue()


def test_truncated_anywhere():
    content = whole_checkpoint()
    for length in range(0, len(content), 7):
        with pytest.raises(DECLARED):
            treadle.load(io.BytesIO(content[:length]))


def test_damaged_anywhere():
    content = whole_checkpoint()
    rng = random.Random(0)
    for _ in range(1000):
        damaged = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        try:
            treadle.load(io.BytesIO(bytes(damaged)))
        except DECLARED:
            pass


def test_random_pickles():
    """Any bytes as a pickle: an exception or a value, nothing else."""
    with zipfile.ZipFile(io.BytesIO(whole_checkpoint())) as zipped:
        good = zipped.read("archive/data.pkl")
    rng = random.Random(1)
    opcodes = [opcode.code.encode("latin1") for opcode in pickletools.opcodes]
    for _ in range(2000):
        damaged = bytearray(good)
        for _ in range(rng.randint(1, 6)):
            place = rng.randrange(len(damaged))
            damaged[place : place + rng.randint(0, 3)] = rng.choice(opcodes)
        try:
            treadle.load(archive(bytes(damaged), {"data/0": b"\0" * 800}))
        except DECLARED:
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
    "deep key": b"\x80\x02})" + b"\x85" * 100_000 + b"K\x01s.",
    "wide key": b"\x80\x02}" + b"K\x01\x85q\x00" + b"h\x00h\x00\x86q\x00" * 60 + b"h\x00K\x01s.",
    "deep set": b"\x80\x02cbuiltins\nset\n])" + b"\x85" * 100_000 + b"a\x85R.",
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
    for weights_only in (True, False, None):
        with pytest.raises(DECLARED):
            treadle.load(archive(HOSTILE[name]), weights_only=weights_only)
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
    with pytest.raises(DECLARED):
        treadle.load(tensor_pickle(**case))


# ---- every kind of file in a row -----------------------------------------------------------------


def besiege(seed, count):
    """Runs `checkpoints.siege` in a process of its own, and judges what it says."""
    here = pathlib.Path(__file__).parent
    path = os.pathsep.join([str(here), str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-m", "checkpoints.siege", str(seed), str(count)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    report = json.loads(run.stdout)
    assert report["loaded"] == [] and report["ran"] == [] and report["executed"] == []
    assert set(report["errors"]) <= {
        "RuntimeError", "UnpicklingError", "EOFError", "SafetensorError"
    }  # fmt: skip
    assert sum(report["errors"].values()) == count
    assert report["slow"] == []
    before, after = report["before"], report["after"]
    assert after["files"] <= before["files"]
    assert after["objects"] <= before["objects"] + 2000
    assert after["tensors"] == before["tensors"]
    if not os.environ.get("TREADLE_SANITIZERS"):  # these keep freed memory for a while
        assert after["resident"] <= before["resident"] + (16 << 20)


def test_five_hundred_hostile_files():
    besiege(1, 500)


@pytest.mark.slow
def test_ten_thousand_hostile_files():
    besiege(2, 10_000)
