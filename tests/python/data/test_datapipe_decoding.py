"""Pipes that read files by their names, passes that begin in the middle, decorators of pipes."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import io
import json
import pickle
from typing import Any

import numpy as np
import pytest

import treadle
from treadle.utils.data import (
    DataLoader,
    IterDataPipe,
    _DatasetKind,
    argument_validation,
    default_collate,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
    runtime_validation_disabled,
)
from treadle.utils.data.datapipes.iter import IterableWrapper, RoutedDecoder
from treadle.utils.data.datapipes.utils import decoder
from treadle.utils.data.datapipes.utils.snapshot import _simple_graph_snapshot_restoration


def test_basic_handlers() -> None:
    saved = io.BytesIO()
    treadle.save(treadle.ones(2), saved)
    for end, data, value in [
        ("txt", b"ab", "ab"),
        ("cls", b"12", 12),
        ("index", b"x", None),
        ("json", b'{"a": 1}', {"a": 1}),
        ("pyd", pickle.dumps([1]), [1]),
        ("TXT", b"1", None),
        ("zzz", b"1", None),
    ]:
        assert decoder.basichandlers(end, data) == value, end
    assert decoder.basichandlers("pt", saved.getvalue()).tolist() == [1, 1]


def test_ends_of_names() -> None:
    handler = decoder.handle_extension("a.b c", lambda data: ("got", data))
    for key in ("x.a.b", "X.A.B", "c", "x.c"):
        assert handler(key, 1) == ("got", 1), key
    assert handler("a", 1) is None and handler("b", 1) is None
    ends = [decoder.extension_extract_fn(p) for p in ("a/b.tar.gz", "a", ".x", "a.JPG")]
    assert ends == ["gz", "", "", "JPG"]


def test_pictures() -> None:
    pytest.importorskip("PIL")
    header = b"P5 2 1 255\n"  # a grey one, two points wide
    data = header + bytes([0, 255])
    assert decoder.imagehandler("l8")("pgm", data).tolist() == [[0, 255]]
    grey = decoder.imagehandler("l")("PGM", data)
    assert grey.dtype == np.float32 and grey.tolist() == [[0.0, 1.0]]
    colours = decoder.imagehandler("torchrgb8")("pgm", data)
    assert isinstance(colours, treadle.Tensor) and tuple(colours.shape) == (3, 1, 2)
    assert colours[1].tolist() == [[0, 255]]
    assert decoder.imagehandler("pil")("pgm", data).mode == "RGB"
    assert decoder.imagehandler("rgb")("gif", data) is None
    with pytest.raises(AssertionError) as error:
        decoder.ImageHandler("nope")
    assert str(error.value) == (
        "imagehandler: expected l, rgb or rgba, perhaps with 8 behind it, or with torch or pil "
        "before it, got 'nope'"
    )


def test_packages_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(decoder.importlib, "import_module", gone)
    with pytest.raises(ModuleNotFoundError) as error:
        decoder.audiohandler("wav", b"x")
    assert str(error.value) == (
        "decode: expected the package torchaudio, which reads sounds, to be installed"
    )
    assert decoder.audiohandler("txt", b"x") is None and decoder.videohandler("txt", b"x") is None
    with pytest.raises(ModuleNotFoundError, match="torchvision, which reads videos"):
        decoder.videohandler("mp4", b"x")
    with pytest.raises(ModuleNotFoundError, match="scipy, which reads files of MATLAB"):
        decoder.mathandler()


def test_decoder() -> None:
    decode = decoder.Decoder(decoder.basichandlers)
    assert decode(("a/x.txt", b"hello")) == {"a/x.txt": "hello"}
    assert decode([("a.txt", b"hi"), ("b.json", b"[1]"), ("_m", b"raw"), ("c.zz", b"1")]) == {
        "a.txt": "hi", "b.json": [1], "_m": "raw", "c.zz": b"1",
    }  # fmt: skip
    assert decode(("a.txt", io.BytesIO(b"stream"))) == {"a.txt": "stream"}
    assert decode(("a.txt", b"")) == {"a.txt": b""} and decode(None) == {}
    assert decode.decode1("json", b"1") == 1
    plain = decoder.Decoder()
    assert plain(("a.txt", b"x")) == {"a.txt": b"x"}
    plain.add_handler(decoder.basichandlers)
    assert plain(("a.txt", b"x")) == {"a.txt": "x"}
    by_name = decoder.Decoder(decoder.basichandlers, key_fn=lambda path: "json")
    assert by_name(("a.txt", b"5")) == {"a.txt": 5}


def test_routed_decoder() -> None:
    def files() -> Any:
        return IterableWrapper([("a.txt", b"hey"), ("b.json", json.dumps([3]).encode())])

    pipe: Any = RoutedDecoder(files(), decoder.basichandlers)
    assert list(pipe) == [("a.txt", "hey"), ("b.json", [3])]
    pipe = files().routed_decode()
    assert len(pipe) == 2 and list(pipe) == [("a.txt", b"hey"), ("b.json", b"[3]")]
    pipe.add_handler(lambda end, data: end.upper())
    assert list(pipe) == [("a.txt", "TXT"), ("b.json", "JSON")]


def test_a_pass_that_begins_behind_the_first_samples() -> None:
    pipe = IterableWrapper(range(5)).map(lambda x: 2 * x)
    _simple_graph_snapshot_restoration(pipe, 3)
    assert pipe._number_of_samples_yielded == 3
    with pytest.raises(RuntimeError) as error:
        _simple_graph_snapshot_restoration(pipe, 3)
    assert str(error.value) == (
        "MapperIterDataPipe: expected a pipe with no pass that was begun by this function, got one"
    )
    assert list(pipe) == [6, 8] and list(pipe) == [0, 2, 4, 6, 8]
    with pytest.raises(RuntimeError) as error:
        _simple_graph_snapshot_restoration(pipe, 30)
    assert str(error.value) == "MapperIterDataPipe: expected 30 samples at least, got 5"
    shuffled = IterableWrapper(range(8)).shuffle()
    orders = []
    for first in (0, 3):
        _simple_graph_snapshot_restoration(shuffled, first, treadle.Generator().manual_seed(0))
        orders.append(list(shuffled))
    assert len(orders[0]) == 8 and orders[1] == orders[0][3:]


def test_both_shufflers_draw_alike() -> None:
    treadle.manual_seed(3)
    one = IterableWrapper(range(20)).shuffle().set_seed(7)
    assert list(one) == list(one.set_seed(7)) != list(range(20))
    from treadle.utils.data.datapipes.map import SequenceWrapper

    other = SequenceWrapper(range(20)).shuffle().set_seed(7)
    order = list(other)
    assert order == list(other.set_seed(7)) and sorted(order) == list(range(20)) != order
    assert list(other.set_shuffle(False)) == list(range(20)) and len(other) == 20


def test_non_deterministic() -> None:
    @non_deterministic
    class Always(IterDataPipe):
        def __iter__(self) -> Any:
            yield 1

    @non_deterministic(lambda pipe, sort=False: not sort)
    class Sometimes(IterDataPipe):
        def __init__(self, pipe: Any, sort: bool = False) -> None:
            self.pipe = pipe

        def __iter__(self) -> Any:
            yield from self.pipe

    assert list(Always()) == [1] and list(Sometimes([2])) == [2]
    with guaranteed_datapipes_determinism():
        with pytest.raises(TypeError) as error:
            Always()
        assert str(error.value) == (
            "Always: expected a deterministic pipe in this block, got one that is not"
        )
        with pytest.raises(TypeError, match="^Sometimes: expected a deterministic pipe"):
            Sometimes([2])
        assert list(Sometimes([2], sort=True)) == [2]
    for wrong, message in [
        (1, "non_deterministic: expected a class of pipes or a function, got 1"),
        (int, "non_deterministic: expected a class derived from IterDataPipe, got int"),
    ]:
        with pytest.raises(TypeError) as error:
            non_deterministic(wrong)  # type: ignore[arg-type]
        assert str(error.value) == message

    @non_deterministic(lambda: 1)  # type: ignore[arg-type]
    class Wrong(IterDataPipe): ...

    with pytest.raises(TypeError) as error:
        Wrong()
    assert str(error.value) == (
        "non_deterministic: expected the function to return a bool, got int"
    )


def test_validation() -> None:
    class Numbers:
        def issubtype_of_instance(self, sample: Any) -> bool:
            return isinstance(sample, int)

        def __repr__(self) -> str:
            return "int"

    class Typed(IterDataPipe):
        type = Numbers()

        @argument_validation
        def __init__(self, samples: IterDataPipe[int]) -> None:
            self.samples = samples

        @runtime_validation
        def __iter__(self) -> Any:
            yield from self.samples

    assert list(Typed([1, 2])) == [1, 2]  # type: ignore[arg-type]
    with pytest.raises(RuntimeError) as error:
        list(Typed([1, "a"]))  # type: ignore[arg-type]
    assert str(error.value) == "Typed: expected samples of the type int, got 'a' of str"
    with runtime_validation_disabled():
        assert list(Typed([1, "a"])) == [1, "a"]  # type: ignore[arg-type]
    with pytest.raises(TypeError) as wrong:
        runtime_validation(lambda self: iter(()))
    assert str(wrong.value) == "runtime_validation: expected the method __iter__, got <lambda>"
    with pytest.raises(TypeError) as wrong:
        argument_validation(1)  # type: ignore[type-var]
    assert str(wrong.value) == "argument_validation: expected a function, got 1"


def test_more_workers_than_processors() -> None:
    with pytest.warns(UserWarning) as found:
        loader = DataLoader([1, 2], num_workers=10_000)
    assert str(found[0].message).endswith(
        ", the processors that this process may use, got 10000; more may be slower"
    )
    assert found[0].filename == __file__
    with pytest.warns(UserWarning, match="^DataLoader: expected num_workers <= "):
        loader.check_worker_number_rationality()


def test_fetchers() -> None:
    data = [1, 2, 3]
    fetcher = _DatasetKind.create_fetcher(_DatasetKind.Map, data, True, default_collate, False)
    assert fetcher.fetch([2, 0]).tolist() == [3, 1]
    fetcher = _DatasetKind.create_fetcher(_DatasetKind.Iterable, data, True, default_collate, True)
    assert fetcher.fetch([0, 0]).tolist() == [1, 2]
    with pytest.raises(StopIteration):
        fetcher.fetch([0, 0])
