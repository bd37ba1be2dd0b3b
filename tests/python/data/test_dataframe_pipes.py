"""Pipes of tables, and tables of which is captured what is done with them."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import random
from typing import Any, Dict, Iterator, List, Optional

import pytest

import treadle
from treadle.utils.data.datapipes.dataframe import dataframe_wrapper as tables
from treadle.utils.data.datapipes.dataframe import dataframes as captured
from treadle.utils.data.datapipes.dataframe import datapipes as pipes
from treadle.utils.data.datapipes.dataframe.structures import DataChunkDF
from treadle.utils.data.datapipes.iter import IterableWrapper


class Table:
    """A table: names of columns, and tensors."""

    def __init__(self, data: Dict[str, Any]) -> None:
        self.data = data

    @property
    def columns(self) -> List[str]:
        return list(self.data)

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.data[name] = value

    def __copy__(self) -> "Table":
        return Table(dict(self.data))

    def rows(self) -> List[tuple]:
        return list(zip(*(column.tolist() for column in self.data.values())))


class Wrapper:
    def create_dataframe(self, data: Any, columns: Optional[List[str]] = None) -> Table:
        values = zip(*data)
        names = columns or []
        return Table({name: treadle.tensor(list(v)) for name, v in zip(names, values)})

    def is_dataframe(self, data: Any) -> bool:
        return isinstance(data, Table)

    def is_column(self, data: Any) -> bool:
        return isinstance(data, treadle.Tensor)

    def iterate(self, data: Table) -> List[tuple]:
        return data.rows()

    def concat(self, buffer: List[Table]) -> Table:
        return Table({name: treadle.cat([b[name] for b in buffer]) for name in buffer[0].columns})

    def get_item(self, data: Table, idx: int) -> Table:
        return Table({name: column[idx : idx + 1] for name, column in data.data.items()})

    def get_len(self, df: Table) -> int:
        return len(df.rows())

    def get_columns(self, df: Table) -> List[str]:
        return df.columns


@pytest.fixture(autouse=True)
def wrapper() -> Iterator[None]:
    before = tables.get_df_wrapper()
    tables.set_df_wrapper(Wrapper())
    yield
    tables.set_df_wrapper(before)
    captured.CaptureControl.disabled = False


def frames() -> Any:
    rows = IterableWrapper([(i, 2 * i) for i in range(7)])
    return pipes.ExampleAggregateAsDataFrames(rows, dataframe_size=3, columns=["a", "b"])


def lists(pipe: Any) -> List[List[tuple]]:
    return [frame.rows() for frame in pipe]


def test_tables() -> None:
    frame = tables.create_dataframe([(1, 2), (3, 4)], ["x", "y"])
    assert tables.is_dataframe(frame) and tables.is_column(frame["x"])
    assert tables.get_columns(frame) == ["x", "y"] and tables.get_len(frame) == 2
    assert tables.concat([frame, tables.get_item(frame, 1)]).rows() == [(1, 2), (3, 4), (3, 4)]
    chunk = DataChunkDF([frame, frame])
    assert list(chunk) == [(1, 2), (3, 4)] * 2 and len(chunk) == 4


def test_pandas_is_asked_for_when_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    tables.set_df_wrapper(tables.PandasWrapper)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(RuntimeError) as error:
        tables.create_dataframe([(1,)])
    assert str(error.value) == "dataframe: expected the package pandas, got none"


def test_pipes() -> None:
    rows = [(i, 2 * i) for i in range(7)]
    assert lists(frames()) == [rows[:3], rows[3:6], rows[6:]]
    assert list(frames()._dataframes_as_tuples()) == rows
    assert lists(frames()._dataframes_per_row()) == [[row] for row in rows]
    assert lists(frames()._dataframes_concat(2)) == [rows[:6], rows[6:]]
    assert lists(frames()._dataframes_filter(lambda row: row[0] > 2)) == [rows[3:6], rows[6:]]
    random.seed(0)
    shuffled = lists(frames()._dataframes_shuffle())
    assert [len(part) for part in shuffled] == [3, 3, 1]
    assert sorted(sum(shuffled, [])) == rows != sum(shuffled, [])


def test_what_is_done_is_captured() -> None:
    example = tables.create_dataframe([(1, 4), (2, 5)], ["a", "b"])
    frame = captured.CaptureDataFrame(schema_df=example)
    total = frame["a"] + frame["b"]
    frame["c"] = total * 2 - frame.data["a"]
    frame["d"] = frame["c"].clamp(max=9)
    assert frame.columns == ["a", "b", "c", "d"] and example.columns == ["a", "b"]
    made = frame.apply_ops(tables.create_dataframe([(3, 1)], ["a", "b"]))
    assert made.rows() == [(3, 1, 5, 5)]
    assert total.apply_ops(tables.create_dataframe([(3, 1)], ["a", "b"])).tolist() == [4]
    lines = frame.ops_str().split("\n")
    assert lines[0] == 'var_1 = input_var_0["a"]' and lines[2] == "var_3 = var_1 + var_2"
    assert lines[-1] == 'input_var_0["d"] = var_10'
    assert captured.get_val("a") == '"a"' and captured.get_val(3) == 3
    with pytest.raises(TypeError):
        iter(frame["a"])
    with pytest.raises(RuntimeError, match="^columns: expected a schema_df, got none$"):
        captured.CaptureDataFrame().columns  # noqa: B018


def test_traced_pipes() -> None:
    traced = frames().trace_as_dataframe()
    traced["c"] = traced["a"] + traced["b"]
    rows = [(i, 2 * i, 3 * i) for i in range(7)]
    assert list(traced) == rows and list(traced) == rows
    assert [list(batch) for batch in traced.batch(3)] == [rows[:3], rows[3:6], rows[6:]]
    assert lists(traced.filter(lambda row: row[2] > 12)) == [rows[5:]]
    assert sum(map(len, lists(traced.shuffle()))) == 7
    assert sorted(map(len, traced.groupby(lambda row: row[0] % 2))) == [3, 4]
    assert not traced.is_shardable()
    with pytest.raises(RuntimeError) as error:
        traced.collate()
    assert str(error.value) == "collate: expected batch() before it, got unbatched tables"


def test_functions_of_modules() -> None:
    frame = captured.CaptureDataFrame()
    with captured.CaptureLikeMock("math.sqrt"):
        import math

        root = math.sqrt(16)
    assert str(root._value) == "math.sqrt(16)" and math.sqrt(16) == 4.0
    root.apply_ops_2(None)
    assert root.execute() == 4.0
    captured.disable_capture()
    with pytest.raises(RuntimeError) as error:
        frame["a"]
    assert str(error.value) == ("capture: expected it to be on, got a use behind disable_capture()")
