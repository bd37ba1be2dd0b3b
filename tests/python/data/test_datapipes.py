"""Pipes of samples: what each passes on, passes that exclude each other, pipes in a DataLoader."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

import treadle
from treadle.utils.data import DataLoader, IterDataPipe, MapDataPipe, functional_datapipe
from treadle.utils.data import datapipes as pipes
from treadle.utils.data.datapipes.iter import FileLister, IterableWrapper, Sampler
from treadle.utils.data.datapipes.map import SequenceWrapper
from treadle.utils.data.datapipes.utils.common import validate_pathname_binary_tuple
from treadle.utils.data.graph import traverse_dps
from treadle.utils.data.graph_settings import apply_sharding, get_all_graph_pipes


def numbers(count: int) -> Any:
    return IterableWrapper(range(count))


def double(x: int) -> int:
    return 2 * x


def fails(kind: type, message: str, function: Callable[[], Any]) -> None:
    with pytest.raises(kind) as error:
        function()
    assert str(error.value) == message


def test_chain_of_pipes() -> None:
    pipe = numbers(10).map(double).filter(lambda x: x % 3 == 0).batch(2)
    assert list(pipe) == list(pipe) == [[0, 6], [12, 18]]
    assert len(numbers(7).map(double).batch(3)) == 3
    assert len(numbers(7).batch(3, drop_last=True)) == len(list(numbers(7).batch(3, True))) == 2
    assert repr(pipe) == "BatcherIterDataPipe"
    with pytest.raises(TypeError):
        len(numbers(3).filter(bool))


def test_columns() -> None:
    def of(sample: Any, *arguments: Any) -> Any:
        return list(IterableWrapper([sample]).map(*arguments))[0]

    assert of((1, 2, 3), lambda a: a + 1, 1) == (1, 3, 3)
    assert of((1, 2, 3), lambda a, b: a + b, [0, 2]) == (4, 2)
    assert of((1, 2, 3), lambda a: a * 9, 0, -1) == (1, 2, 3, 9)
    assert of([1, 2, 3], lambda a, b: a * b, [1, 2], 0) == [6, 2, 3]
    assert of({"a": 1, "b": 2}, lambda a: a + 7, "a", "c") == {"a": 1, "b": 2, "c": 8}
    assert of({"a": 1, "b": 2}, lambda a, b: a + b, ["a", "b"]) == {"a": 3}
    rows = IterableWrapper([(1, 2), (3, 1)])
    assert list(rows.filter(lambda a, b: a < b, input_col=[0, 1])) == [(1, 2)]
    assert list(rows.filter(lambda a: treadle.tensor(a > 1), input_col=0)) == [(3, 1)]
    fails(ValueError, "map: expected input_col beside output_col, got none",
          lambda: rows.map(double, output_col=1))  # fmt: skip
    fails(ValueError, "map: expected one output_col, got [0, 1]",
          lambda: rows.map(double, 0, [0, 1]))  # fmt: skip
    fails(ValueError, "double: expected a function of 2 arguments, as input_col = [0, 1] has, got "
          "double(x: 'int') -> 'int'", lambda: rows.map(double, [0, 1]))  # fmt: skip
    fails(ValueError, "filter: expected filter_fn to return a bool, got int",
          lambda: list(numbers(1).filter(lambda x: 3)))  # fmt: skip


def test_gathering_and_taking_apart() -> None:
    assert list(IterableWrapper([[1, [2, 3]], [4]]).unbatch()) == [1, [2, 3], 4]
    nested = IterableWrapper([[[1, 2], [3]]])
    assert list(nested.unbatch(2)) == list(nested.unbatch(-1)) == [1, 2, 3]
    fails(IndexError, "unbatch: expected lists down to unbatch_level 1, got int",
          lambda: list(numbers(1).unbatch()))  # fmt: skip
    fails(ValueError, "unbatch: expected unbatch_level >= -1, got -2", lambda: nested.unbatch(-2))
    fails(AssertionError, "batch: expected batch_size > 0, got 0", lambda: numbers(2).batch(0))
    names = IterableWrapper(["a.py", "b.c", "c.py", "d.py"])

    def group(**options: Any) -> list:
        return list(names.groupby(lambda s: s.split(".")[1], **options))

    assert group() == [["a.py", "c.py", "d.py"], ["b.c"]]
    pairs = [("py", ["a.py", "c.py"]), ("c", ["b.c"]), ("py", ["d.py"])]
    assert group(group_size=2, keep_key=True) == pairs
    assert group(group_size=2, drop_remaining=True) == [["a.py", "c.py"]]
    assert group(buffer_size=3) == [["a.py", "c.py"], ["b.c"], ["d.py"]]
    fails(RuntimeError, "groupby: expected 2 samples of the key 'py' among 2, got 1",
          lambda: group(group_size=2, buffer_size=2))  # fmt: skip
    fails(ValueError, "groupby: expected 0 < group_size <= 2, got 3",
          lambda: group(group_size=3, buffer_size=2))  # fmt: skip
    batches = list(numbers(4).batch(2).collate())
    assert [b.tolist() for b in batches] == [[0, 1], [2, 3]] and batches[0].dtype == treadle.int64
    assert list(numbers(2).collate(double)) == list(numbers(2).collate(collate_fn=double)) == [0, 2]


def test_joining() -> None:
    ab, cde = IterableWrapper("ab"), IterableWrapper("cde")
    assert list(ab.zip(cde)) == [("a", "c"), ("b", "d")] and len(ab.zip(cde)) == 2
    assert list(ab.concat(cde)) == list("abcde") and len(ab.concat(cde)) == 5
    assert list(ab.mux(cde)) == list("acbd") and len(ab.mux(cde)) == 4
    fails(TypeError, "zip: expected pipes, got int", lambda: ab.zip(3))
    fails(ValueError, "mux: expected pipes, got none", lambda: pipes.iter.Multiplexer())


def test_fork() -> None:
    a, b = numbers(5).fork(2)
    assert list(a) == list(b) == list(range(5)) and list(zip(a, b))[4] == (4, 4) and len(a) == 5
    a, b = numbers(5).fork(2, buffer_size=2)
    assert list(zip(a, b))[4] == (4, 4)
    fails(BufferError, "fork: expected at most 2 samples to wait for a child, got 3; see "
          "buffer_size", lambda: list(a))  # fmt: skip
    a, b = IterableWrapper([[1]]).fork(2, copy="deep")
    assert list(a)[0] is not list(b)[0]
    a, b = numbers(3).fork(2)
    first, second = iter(a), iter(b)
    assert (next(first), next(second)) == (0, 0)
    assert next(iter(a)) == 0
    fails(RuntimeError, "fork: expected an iterator of the pass that was begun last, got one of an "
          "earlier pass", lambda: next(second))  # fmt: skip
    fails(ValueError, "fork: expected num_instances >= 1, got 0", lambda: numbers(1).fork(0))


def test_demux() -> None:
    even, odd = numbers(6).demux(2, lambda x: x % 2)
    assert list(odd) == [1, 3, 5] and list(even) == [0, 2, 4]
    a, b = numbers(6).demux(2, lambda x: None if x == 3 else x % 2, drop_none=True)
    assert list(a) == [0, 2, 4] and list(b) == [1, 5]
    a, _ = numbers(6).demux(2, lambda x: 5)
    fails(ValueError, "demux: expected classifier_fn to return a number below 2, got 5",
          lambda: list(a))  # fmt: skip
    a, _ = numbers(6).demux(2, lambda x: 1, buffer_size=3)
    fails(BufferError, "demux: expected at most 3 samples to wait for a child, got 4; see "
          "buffer_size", lambda: list(a))  # fmt: skip


def test_orders() -> None:
    # Python's own random numbers, so that a seed means the same order everywhere.
    assert list(numbers(10).shuffle(buffer_size=4).set_seed(3)) == [1, 4, 2, 3, 0, 8, 7, 5, 9, 6]
    assert list(numbers(10).shuffle().set_seed(5)) == [9, 4, 6, 8, 7, 5, 0, 2, 1, 3]
    assert list(numbers(6).shuffle().set_shuffle(False)) == list(range(6))
    pipe = numbers(50).shuffle()
    treadle.manual_seed(1)
    first, second = list(pipe), list(pipe)
    treadle.manual_seed(1)
    assert list(pipe) == first != second and sorted(first) == list(range(50))
    assert sorted(numbers(6).batch(2).shuffle(unbatch_level=1)) == list(range(6))
    assert list(Sampler(numbers(4))) == [0, 1, 2, 3]
    fails(ValueError, "shuffle: expected buffer_size > 0, got 0",
          lambda: numbers(1).shuffle(buffer_size=0))  # fmt: skip


def test_a_pipe_is_gone_through_once_at_a_time() -> None:
    pipe = numbers(3)
    first, second = iter(pipe), iter(pipe)
    assert next(first) == 0 and next(second) == 0
    fails(RuntimeError, "IterableWrapperIterDataPipe: expected the iterator that was begun last, "
          "got an earlier one: a pipe is gone through once at a time; fork() makes several of it",
          lambda: next(first))  # fmt: skip
    assert list(second) == [1, 2]


def test_sources_are_copied() -> None:
    source = [[1], [2]]
    for sample in IterableWrapper(source):
        sample.append(0)
    assert source == [[1], [2]]
    generator = (i for i in range(2))
    with pytest.warns(UserWarning) as warned:
        assert list(IterableWrapper(generator)) == [0, 1]
    assert str(warned[0].message) == (
        "IterableWrapper: expected an iterable that can be copied, got generator: a second pass "
        "may see what the first changed"
    )


def test_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name, text in (("b.txt", "two\n"), ("a.txt", "one\n"), ("c.bin", "x"), ("sub/d.txt", "d")):
        (tmp_path / name).write_text(text)
    root = str(tmp_path)
    listed = FileLister(root, "*.txt")
    assert [Path(p).name for p in listed] == ["a.txt", "b.txt"]
    assert len(list(FileLister([root], recursive=True))) == 4
    read = list(listed.open_files(mode="b").read_from_stream())
    assert read == [(f"{root}/a.txt", b"one\n"), (f"{root}/b.txt", b"two\n")]
    parts = list(listed.open_files().read_from_stream(3))
    assert [part for _, part in parts] == ["one", "\n", "two", "\n"]
    with list(listed.open_files())[0][1] as file:
        assert file.readline() == "one\n"
    assert file.closed and file.file_obj.closed
    fails(ValueError, "open_files: expected mode r, rb, rt, b or t, got 'w'",
          lambda: listed.open_files("w"))  # fmt: skip
    fails(TypeError, "list_files: expected a length to be given for len(), got none",
          lambda: len(listed))  # fmt: skip
    assert len(FileLister(root, length=4)) == 4
    validate_pathname_binary_tuple(list(listed.open_files())[0])
    fails(TypeError, "expected a pair of a path and an open file, got ('a', 3)",
          lambda: validate_pathname_binary_tuple(("a", 3)))  # fmt: skip
    with pytest.raises(OSError):
        list(FileLister(f"{root}/none"))


def test_parts() -> None:
    pipe = numbers(7).sharding_filter().map(double)
    assert list(pipe) == [0, 2, 4, 6, 8, 10, 12]
    assert apply_sharding(pipe, 3, 1) is pipe
    assert list(pipe) == [2, 8] and len(pipe) == 2
    fails(ValueError, "apply_sharding: expected 0 <= instance_id < 3, got 3",
          lambda: apply_sharding(pipe, 3, 3))  # fmt: skip


def test_parts_of_parts() -> None:
    from treadle.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES as GROUPS

    for order in (1, -1):
        pipe = numbers(12).sharding_filter()
        groups = [(2, 1, GROUPS.DISTRIBUTED), (3, 1, GROUPS.MULTIPROCESSING)]
        for group in groups[::order]:
            pipe.apply_sharding(*group)
        assert list(pipe) == [4, 10]
    fails(RuntimeError, "apply_sharding: expected the group DEFAULT alone or other groups, got "
          "DEFAULT after MULTIPROCESSING", lambda: pipe.apply_sharding(2, 0))  # fmt: skip
    pipe = numbers(6).sharding_filter(GROUPS.DISTRIBUTED)
    for group in groups:
        pipe.apply_sharding(*group)
    assert list(pipe) == [1, 3, 5]


def test_graph() -> None:
    source = numbers(4)
    a, b = source.fork(2)
    joined = a.zip(b.map(double))
    graph = traverse_dps(joined)
    assert list(graph) == [id(joined)] and len(graph[id(joined)][1]) == 2
    assert [type(p).__name__ for p in get_all_graph_pipes(graph)].count(type(source).__name__) == 1


def test_in_a_loader() -> None:
    pipe = numbers(6).shuffle().sharding_filter()
    batches = DataLoader(pipe, batch_size=4, shuffle=False)
    assert [b.tolist() for b in batches] == [[0, 1, 2, 3], [4, 5]]
    treadle.manual_seed(0)
    loader = DataLoader(pipe, batch_size=None, shuffle=True)
    first, second = [int(x) for x in loader], [int(x) for x in loader]
    assert sorted(first) == sorted(second) == list(range(6)) and first != second
    assert sorted(int(x) for x in DataLoader(numbers(6), batch_size=None, shuffle=True)) == list(
        range(6)
    )


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_take_parts_of_one_order(persistent: bool) -> None:
    pipe = numbers(12).shuffle().sharding_filter()
    loader = DataLoader(
        pipe, batch_size=None, shuffle=True, num_workers=2, persistent_workers=persistent
    )
    for _ in range(3):
        assert sorted(int(x) for x in loader) == list(range(12))


def test_pipes_by_key() -> None:
    pipe = SequenceWrapper(range(6)).map(lambda x: x * 3)
    assert pipe[2] == 6 and len(pipe) == 6 and repr(pipe) == "MapperMapDataPipe"
    assert list(pipe.batch(4)) == [[0, 3, 6, 9], [12, 15]]
    assert pipe.zip(SequenceWrapper("abcdef"))[1] == (3, "b")
    assert list(pipe.concat(SequenceWrapper("ab"))) == [0, 3, 6, 9, 12, 15, "a", "b"]
    assert list(pipe.shuffle().set_seed(4)) == [9, 15, 12, 0, 6, 3]
    assert SequenceWrapper({"a": 1})["a"] == 1
    fails(IndexError, "batch: expected an index below 2, got 2", lambda: pipe.batch(4)[2])
    fails(IndexError, "concat: expected an index below 6, got 6", lambda: pipe.concat()[6])


def test_pipes_of_the_program() -> None:
    @functional_datapipe("plus_one_of_test")
    class PlusOne(IterDataPipe):
        resets = 0

        def __init__(self, source: Any) -> None:
            self.source = source

        def __iter__(self) -> Any:
            for x in self.source:
                yield x + 1

        def reset(self) -> None:
            self.resets += 1

    try:
        pipe = numbers(2).plus_one_of_test()
        assert list(pipe) == list(pipe) == [1, 2] and pipe.resets == 2
        fails(ValueError, "functional_datapipe: expected a new name, got 'plus_one_of_test', which "
              "PlusOne has", lambda: functional_datapipe("plus_one_of_test")(PlusOne))  # fmt: skip
    finally:
        del IterDataPipe.functions["plus_one_of_test"]
    assert not hasattr(numbers(1), "plus_one_of_test")
    fails(TypeError, "functional_datapipe: expected a class derived from IterDataPipe or "
          "MapDataPipe, got int", lambda: functional_datapipe("x")(int))  # fmt: skip
    fails(AttributeError, "'IterableWrapperIterDataPipe' object has no attribute 'none'",
          lambda: numbers(1).none)  # fmt: skip
    assert not issubclass(IterDataPipe, MapDataPipe)


def test_copies_and_pickles() -> None:
    pipe = numbers(4).map(double).shuffle().set_shuffle(False).batch(2)
    next(iter(pipe))
    assert list(copy.deepcopy(pipe)) == list(pickle.loads(pickle.dumps(pipe))) == [[0, 2], [4, 6]]


def test_module_loads_when_it_is_asked_for() -> None:
    program = (
        "import sys, treadle.utils.data; name = 'treadle.utils.data.datapipes'; "
        "print(name in sys.modules); from treadle.utils.data import IterDataPipe; "
        "print(name in sys.modules, 'map' in IterDataPipe.functions)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "False\nTrue True\n", found.stderr
