"""Makes files that must not load, without end: `for attack in attacks(rng): ...`.

Each is a checkpoint (in the zip format or the old one) or a safetensors file that is cut, damaged
where a checksum or a rule of the format tells, or written by an attacker: pickles that call
functions, numbers that point outside, sizes that nobody has.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib
import io
import json
import pickle
import random
import struct
import sys
import zipfile
from typing import Callable, Iterator, NamedTuple

from source_tree import DATA

from .gadgets import GADGETS

CHECKPOINTS = DATA / "checkpoints"


class Attack(NamedTuple):
    """A file and what it tries."""

    kind: str
    content: bytes
    format: str  # "pickle": for treadle.load, "safetensors"


# ---- whole files to start from -------------------------------------------------------------------


def _read(pattern: str) -> list[bytes]:
    return [
        path.read_bytes()
        for path in sorted(CHECKPOINTS.glob(pattern))
        if not path.name.startswith("refused")
    ]


ZIPS = [data for data in _read("*.pt") if data[:2] == b"PK"]
OLD = _read("*.old.pt")
SAFETENSORS = _read("*.safetensors")


def archive(pickled: bytes, storages: int = 2, size: int = 24, **members: bytes) -> bytes:
    """A checkpoint with a pickle written by hand."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        zipped.writestr("archive/data.pkl", pickled)
        for number in range(storages):
            zipped.writestr(f"archive/data/{number}", bytes(size))
        for name, content in members.items():
            zipped.writestr(f"archive/{name}", content)
    return file.getvalue()


def old_file(pickled: bytes, keys: object = None, rest: bytes = b"") -> bytes:
    """A file in the old format with a pickle written by hand."""
    heads = (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})
    head = b"".join(pickle.dumps(value, 2) for value in heads)
    return head + pickled + pickle.dumps(keys, 2) + rest


# ---- cut and damaged -----------------------------------------------------------------------------


def cut_zip(rng: random.Random) -> bytes:
    data = rng.choice(ZIPS)
    return data[: rng.randrange(len(data))]


def cut_old(rng: random.Random) -> bytes:
    data = rng.choice(OLD)
    return data[: rng.randrange(len(data))]


def damaged_member(rng: random.Random) -> bytes:
    """Other bytes in a pickle or a storage: its checksum is wrong."""
    data = bytearray(rng.choice(ZIPS))
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as zipped:
        infos = [
            info
            for info in zipped.infolist()
            if info.file_size and (info.filename.endswith("data.pkl") or "/data/" in info.filename)
        ]
        info = rng.choice(infos)
    head = info.header_offset
    begin = head + 30 + sum(struct.unpack_from("<2H", data, head + 26))
    for _ in range(rng.randint(1, 4)):
        data[begin + rng.randrange(info.file_size)] ^= rng.randint(1, 255)
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as zipped:
        # Two changes of one byte may undo each other.
        return bytes(data) if zipped.testzip() else damaged_member(rng)


def damaged_directory(rng: random.Random) -> bytes:
    """A member's entry in the zip's directory with another size, checksum, place or method."""
    data = bytearray(rng.choice(ZIPS))
    entries = []
    place = data.find(b"PK\x01\x02")
    while place >= 0:
        name = bytes(data[place + 46 : place + 46 + struct.unpack_from("<H", data, place + 28)[0]])
        if (b"data.pkl" in name or b"/data/" in name) and struct.unpack_from(
            "<I", data, place + 24
        )[0]:
            entries.append(place)
        place = data.find(b"PK\x01\x02", place + 4)
    place = rng.choice(entries)
    offset, form = rng.choice([(10, "<H"), (16, "<I"), (20, "<I"), (24, "<I"), (42, "<I")])
    (old,) = struct.unpack_from(form, data, place + offset)
    top = 2 ** (8 * struct.calcsize(form)) - 1
    new = rng.choice([top, top // 2, old + 1, old - 1, rng.randint(0, top)]) % (top + 1)
    struct.pack_into(form, data, place + offset, new if new != old else old ^ 1)
    return bytes(data)


def damaged_end(rng: random.Random) -> bytes:
    """The records at the end of a zip file, which say where the directory is, with another size or
    place of it."""
    data = bytearray(rng.choice(ZIPS))
    end, wide_end = data.rfind(b"PK\x05\x06"), data.rfind(b"PK\x06\x06")
    offset, wide_offset = rng.choice([(12, 40), (16, 48)])
    (old,) = struct.unpack_from("<I", data, end + offset)
    new = rng.choice([2**32 - 1, 2**31, old + rng.randint(1, 2**20), rng.randint(0, 2**32 - 1)])
    new = new if new != old else old + 1
    struct.pack_into("<I", data, end + offset, new)
    if wide_end >= 0:  # the same with wider numbers, which then count
        struct.pack_into("<Q", data, wide_end + wide_offset, new)
    return bytes(data)


# ---- pickles that want to run something ----------------------------------------------------------

_CALLED = (
    "os.system os.popen os.remove os.execv os.fork posix.system nt.system subprocess.Popen "
    "subprocess.check_output builtins.eval builtins.exec builtins.compile builtins.open "
    "builtins.__import__ builtins.getattr builtins.setattr builtins.globals builtins.breakpoint "
    "builtins.print builtins.input builtins.type builtins.super builtins.map builtins.bytes "
    "builtins.memoryview __builtin__.eval __builtin__.apply __builtin__.file copyreg.__newobj__ "
    "copy_reg._reconstructor shutil.rmtree shutil.move pathlib.Path.unlink socket.socket "
    "ctypes.CDLL ctypes.memset importlib.import_module importlib.reload runpy.run_path "
    "runpy.run_module pickle.loads _pickle.loads marshal.loads types.FunctionType types.CodeType "
    "types.ModuleType functools.partial functools.reduce operator.attrgetter "
    "operator.methodcaller operator.itemgetter operator.setitem itertools.accumulate "
    "tempfile.TemporaryDirectory tempfile.NamedTemporaryFile webbrowser.open threading.Thread "
    "threading.Timer multiprocessing.Process urllib.request.urlopen http.client.HTTPConnection "
    "logging.FileHandler logging.config.listen sqlite3.connect zipfile.ZipFile tarfile.open "
    "code.interact pdb.set_trace timeit.timeit asyncio.run signal.signal sys.exit "
    "sys.setrecursionlimit gc.disable atexit.register weakref.finalize inspect.getsource "
    "linecache.getline codecs.open _codecs.decode codecs.decode distutils.spawn.spawn pty.spawn "
    "platform.popen glob.glob numpy.load numpy.save numpy.fromfile numpy.memmap numpy.frompyfunc "
    "numpy.testing.runstring numpy.testing._private.utils.runstring numpy.f2py.compile "
    "numpy.empty numpy.zeros torch.load torch.save torch.hub.load torch.jit.load torch.zeros "
    "torch.empty torch.ones torch.full torch.frombuffer torch.from_file torch.serialization.load "
    "torch.serialization.save torch._utils._import_dotted_name torch.utils.cpp_extension.load "
    "torch.storage._load_from_bytes torch._rebuild._rebuild_from_bytes "
    "treadle._rebuild._rebuild_from_bytes treadle.zeros treadle.load treadle.save "
    "treadle._atomic_file.replacing treadle.serialization.load treadle.nn.functional.relu "
    "torch.nn.functional.relu torch.nn.functional.pad torch.relu torch.nn.Linear "
    "torch.nn.modules.linear.Linear torch.optim.adam.Adam torch.utils.data.DataLoader "
    "torch.Tensor torch.FloatTensor torch.FloatStorage torch.nn.Module.load_state_dict "
    "checkpoints.traps.run checkpoints.traps.Plain checkpoints.traps.Run __main__.main "
).split()  # fmt: skip
_ARGUMENTS = ["exit 1", "ran.append(1)", "os", "/nonexistent/file", "", "x" * 50]


def _text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def _argument(rng: random.Random) -> bytes:
    return rng.choice(
        [_text(rng.choice(_ARGUMENTS)), b"K\x01", b"N", b"]", b"}", b"J\xff\xff\xff\x7f", b"\x88"]
    )


def _name(rng: random.Random) -> tuple[str, str]:
    if rng.random() < 0.3:
        # Whatever the program has.
        module = rng.choice(sorted(name for name in sys.modules if not name.startswith("_pytest")))
        names = [name for name in list(vars(sys.modules[module] or object)) if name.isidentifier()]
        if names and module not in ("collections", "argparse", "datetime", "decimal", "fractions"):
            return module, rng.choice(sorted(names))
    module, _, name = rng.choice(_CALLED).rpartition(".")
    return module, name


def _push_name(module: str, name: str, rng: random.Random) -> tuple[bytes, int]:
    if rng.random() < 0.3:
        return _text(module) + _text(name) + b"\x93", 4
    return b"c" + f"{module}\n{name}\n".encode(), 2


def calling_pickle(rng: random.Random) -> bytes:
    """A pickle that calls something, in one of the ways that there are."""
    module, name = _name(rng)
    way = rng.randrange(7)
    arguments = b"(" + b"".join(_argument(rng) for _ in range(rng.randint(0, 3))) + b"t"
    if way == 0:  # INST
        return b"\x80\x02(" + _argument(rng) + b"i" + f"{module}\n{name}\n".encode() + b"."
    if way == 1:  # OBJ
        return b"\x80\x02(c" + f"{module}\n{name}\n".encode() + _argument(rng) + b"o."
    pushed, protocol = _push_name(module, name, rng)
    head = b"\x80" + bytes([protocol])
    if way == 2:  # as one of the list that a tensor's hooks are
        return head + b"](" + _argument(rng) + pushed + arguments + b"Re."
    if way == 3:  # as the state of a container
        return head + b"ccollections\nOrderedDict\n)R}" + _text("x") + pushed + arguments + b"Rsb."
    if way == 4:  # through a call that is allowed
        return head + b"ccollections\nOrderedDict\n](" + pushed + arguments + b"Re\x85R."
    if way == 5:  # given state after it was called
        return head + pushed + arguments + b"R}" + _text("x") + b"K\x01sb."
    return head + pushed + arguments + b"R."


def calling_zip(rng: random.Random) -> bytes:
    return archive(calling_pickle(rng))


def calling_old(rng: random.Random) -> bytes:
    return old_file(calling_pickle(rng))


def gadget_zip(rng: random.Random) -> bytes:
    return archive(rng.choice(list(GADGETS.values())))


# ---- numbers that lie ----------------------------------------------------------------------------


def _number(value: int) -> bytes:
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def _tuple(*numbers: int) -> bytes:
    return b"(" + b"".join(_number(n) for n in numbers) + b"t"


def _storage(kind: str, key: str, numel: int, old: bool, view: bytes = b"N") -> bytes:
    named = _text("storage") + b"c" + f"torch\n{kind}\n".encode() + _text(key) + _text("cpu")
    return b"(" + named + _number(numel) + (view if old else b"") + b"tQ"


def _tensor(storage: bytes, offset: int, size: bytes, stride: bytes) -> bytes:
    name = b"ctorch._utils\n_rebuild_tensor_v2\n"
    return name + b"(" + storage + _number(offset) + size + stride + b"\x89Nt" + b"R"


_HUGE = [2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 2**70, 10**15]


def outside(rng: random.Random, old: bool) -> bytes:
    """The pickle of a tensor over six float32 numbers that lies, at least in part, elsewhere."""
    good = {"offset": 0, "size": (2, 3), "stride": (3, 1), "numel": 6, "key": "0"}
    lie = rng.choice(["offset", "size", "stride", "numel", "key", "negative", "length"])
    if lie == "offset":
        good["offset"] = rng.choice([1, 2, 7, -1, *_HUGE])
    elif lie == "size":
        good["size"] = (rng.choice([3, 4, 7, *_HUGE]), 3)
    elif lie == "stride":
        good["stride"] = (rng.choice([4, 5, *_HUGE]), 1)
    elif lie == "numel":
        good["numel"] = rng.choice([0, 5, 7, 12, -6, *_HUGE])
    elif lie == "key":
        good["key"] = rng.choice(["9", "", "../data.pkl", "/etc/passwd", "0/../0", "-1", "0\0"])
    elif lie == "negative":
        good["size"] = rng.choice([(-2, 3), (2, -3), (-(2**63), 1)])
    else:
        good["size"] = rng.choice([(2, 3, 1), (6, 1, 1, 1), (7,), (1,) * 100])
    storage = _storage("FloatStorage", good["key"], good["numel"], old)
    tensor = _tensor(storage, good["offset"], _tuple(*good["size"]), _tuple(*good["stride"]))
    return b"\x80\x02" + tensor + b"."


def outside_zip(rng: random.Random) -> bytes:
    return archive(outside(rng, False))


def outside_old(rng: random.Random) -> bytes:
    keys = ["0"]
    pickled = outside(rng, True)
    if rng.random() < 0.3:  # the lie is in what follows instead
        storage = _storage("FloatStorage", "0", 6, True)
        pickled = b"\x80\x02" + _tensor(storage, 0, _tuple(6), _tuple(1)) + b"."
        numel = rng.choice([0, 5, 7, -1, 2**40, 2**62])
        keys = rng.choice([["0"], [], ["1"], ["0", "0"], ["0", "1"], [0], "0"])
        numel = numel if keys == ["0"] else 6
        return old_file(pickled, keys, struct.pack("<q", numel) + bytes(24))
    return old_file(pickled, keys, struct.pack("<q", 6) + bytes(24))


def view_outside(rng: random.Random) -> bytes:
    """In the old format a storage may be a part of another."""
    offset, length = rng.choice([(0, 7), (1, 6), (-1, 2), (6, 1), (2**62, 2**62), (0, -1)])
    view = b"(" + _text("1") + _number(offset) + _number(length) + b"t"
    storage = _storage("FloatStorage", "0", 6, True, view)
    pickled = b"\x80\x02" + _tensor(storage, 0, _tuple(1), _tuple(1)) + b"."
    return old_file(pickled, ["0"], struct.pack("<q", 6) + bytes(24))


# ---- small files that ask for much ---------------------------------------------------------------


def _copied_lists(count: int) -> bytes:
    items = b"](" + b"K\x01" * count + b"eq\x02"
    return b"cbuiltins\nlist\nq\x01" + items + b"h\x01h\x02\x85R" * count


def _set_of_lists(count: int) -> bytes:
    items = b"](" + b"K\x01" * count + b"eq\x02"
    return b"cbuiltins\nset\nq\x01](" + items + b"h\x02" * count + b"e\x85R"


def _copied_attributes(count: int) -> bytes:
    attributes = b"}(" + b"".join(_text(str(n)) + b"N" for n in range(count // 10)) + b"uq\x02"
    return b"ccollections\nOrderedDict\nq\x01" + attributes + b"h\x01)Rh\x02b" * count


def _many_dimensions(count: int) -> bytes:
    ones = b"(" + b"K\x01" * count + b"t"
    return _tensor(_storage("FloatStorage", "0", 6, False), 0, ones, ones)


def _deep_keys(count: int) -> bytes:
    """A key of at least 6000 tuples in each other; of 3000 it may well be."""
    return b"})" + b"\x85" * count * 6 + b"K\x01s"


def _wide_keys(count: int) -> bytes:
    return b"}K\x01\x85q\x00" + b"h\x00h\x00\x86q\x00" * 60 + b"h\x00K\x01s"


def _long_numbers(count: int) -> bytes:
    return b"cdecimal\nDecimal\n" + _text("1e999999999" * 400) + b"\x85R"


def greedy_pickle(rng: random.Random) -> bytes:
    """A pickle that wants far more memory or time than its length."""
    count = rng.randint(1000, 20000)
    size = struct.pack("<Q", rng.choice(_HUGE) % 2**64)
    huge = _number(rng.choice(_HUGE))
    promises = [b"\x8d" + size, b"\x8e" + size, b"\x96" + size, b"X\xff\xff\xff\xff"]
    if rng.random() < 0.5:
        return b"\x80\x04" + rng.choice(promises) + b"x."
    made = [f"cbuiltins\n{name}\n".encode() + huge + b"\x85R" for name in ("bytearray", "list")]
    makers = [
        _copied_lists, _set_of_lists, _copied_attributes, _many_dimensions, _deep_keys,
        _wide_keys, _long_numbers,
    ]  # fmt: skip
    return b"\x80\x02" + rng.choice([*made, rng.choice(makers)(count)]) + b"."


def greedy_zip(rng: random.Random) -> bytes:
    return archive(greedy_pickle(rng))


def greedy_members(rng: random.Random) -> bytes:
    """Many members that are all the same bytes of the file."""
    data = bytearray(archive(b"\x80\x02N.", 1, 4096))
    end = data.rfind(b"PK\x05\x06")
    first = data.find(b"PK\x01\x02")
    directory = bytes(data[first:end])
    count = rng.randint(20, 300)
    record = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 2, 2, len(directory) * count, first, 0)
    copies = b"".join(
        directory.replace(b"archive/data/0", f"archive/data/{n % 10}".encode())
        for n in range(count)
    )
    return bytes(data[:first]) + copies + record


# ---- pickles of random instructions --------------------------------------------------------------


def not_a_checkpoint(rng: random.Random) -> bytes:
    """Anything else: text, pickles, archives of other things."""
    kind = rng.randrange(5)
    if kind == 0:
        return bytes([rng.randrange(0x81, 256)]) + rng.randbytes(rng.randint(0, 300))
    if kind == 1:
        return pickle.dumps([rng.random() for _ in range(rng.randint(0, 20))], rng.randint(2, 5))
    if kind == 2:
        return b"\x80\x02" + rng.randbytes(rng.randint(0, 100))
    if kind == 3:
        file = io.BytesIO()
        with zipfile.ZipFile(
            file, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
        ) as z:
            z.writestr(rng.choice(["a.txt", "data.pkl", "a/b/data.pkl", "x/code.py"]), "hello" * 9)
        return file.getvalue()
    return b"PK\x03\x04" + rng.randbytes(rng.randint(0, 200))


# ---- safetensors ---------------------------------------------------------------------------------


def _safetensors(header: object, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def cut_safetensors(rng: random.Random) -> bytes:
    data = rng.choice(SAFETENSORS)
    return (
        data[: rng.randrange(len(data))]
        if rng.random() < 0.8
        else data + b"\0" * rng.randint(1, 99)
    )


def lying_safetensors(rng: random.Random) -> bytes:
    """A header that says what is not so."""
    data = rng.choice(SAFETENSORS)
    (length,) = struct.unpack_from("<Q", data)
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    name = rng.choice(
        [
            name
            for name, entry in header.items()
            if name != "__metadata__" and entry["data_offsets"][0] < entry["data_offsets"][1]
        ]
    )
    entry = header[name]
    lie = rng.randrange(9)
    if lie == 0:
        entry["data_offsets"][rng.randrange(2)] += rng.choice([-1, 1, 8, 2**40, 2**62, 2**64])
    elif lie == 1:
        entry["shape"] = rng.choice(
            [[2**62, 4], [-1], [1.5], "ab", None, [True, 5], [10**30], [7, 7]]
        )
    elif lie == 2:
        entry["dtype"] = rng.choice(["F4", "X", "", None, 3, ["F32"], "F99", "f32"])
    elif lie == 3:
        del entry[rng.choice(sorted(entry))]
    elif lie == 4:
        header["copy"] = entry
    elif lie == 5:
        header["__metadata__"] = rng.choice([{"a": 1}, [], "a", {"a": {"b": "c"}}, 3])
    elif lie == 6:
        header[name] = rng.choice([None, [], 3, "x", {}])
    elif lie == 7:
        entry["data_offsets"] = rng.choice([[0], [0, 1, 2], [4, 0], "01", None, [0.0, 4.0]])
    else:
        del header[name]
    return _safetensors(header, body)


def broken_safetensors(rng: random.Random) -> bytes:
    """A header that is none."""
    depth = rng.randint(2000, 200_000)
    return rng.choice(
        [
            struct.pack("<Q", rng.choice(_HUGE) % 2**64) + b"{}",
            _safetensors(b"[" * depth, b""),
            _safetensors(b'{"a":' * depth, b""),
            _safetensors(
                rng.choice([b"[]", b"3", b"null", b'"x"', b"", b"{", b"\xff\xfe", b"NaN"]), b""
            ),
            _safetensors(b'{"a":' + b"9" * rng.randint(1, 9999) + b"}", b""),
            _safetensors(rng.randbytes(rng.randint(1, 60)), b""),
            _safetensors(b'{"__metadata__":{"a":"b","a":"c"}}', b""),
            rng.randbytes(rng.randint(0, 40)),
        ]
    )


KINDS: dict[str, tuple[str, Callable[[random.Random], bytes]]] = {
    make.__name__: (form, make)
    for form, makers in (
        (
            "pickle",
            (
                cut_zip, cut_old, damaged_member, damaged_directory, damaged_end, calling_zip,
                calling_zip, calling_old, gadget_zip, outside_zip, outside_old, view_outside,
                greedy_zip, greedy_members, not_a_checkpoint,
            ),
        ),
        ("safetensors", (cut_safetensors, lying_safetensors, broken_safetensors)),
    )
    for make in makers
}  # fmt: skip


def attacks(seed: int) -> Iterator[Attack]:
    """Files that must not load, of every kind in turn."""
    importlib.import_module("checkpoints.traps")
    rng = random.Random(seed)
    while True:
        for kind, (form, make) in KINDS.items():
            yield Attack(kind, make(rng), form)
