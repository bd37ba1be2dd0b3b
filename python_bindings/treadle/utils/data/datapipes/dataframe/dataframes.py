"""Operations on a table, captured, to be done with each table that comes.

    frame = CaptureDataFrame(schema_df=example)
    frame["c"] = frame["a"] + frame["b"]
    frame.apply_ops(table)                        # the table, with the column c

Attributes, items, calls, sums, differences and products of what is captured are captured, too.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
import importlib
from typing import Any, Dict, Iterator, Optional

from ..datapipe import DFIterDataPipe, functional_datapipe
from .structures import DataChunkDF

# Methods of pipes, which are not captured.
DATAPIPES_OPS = ["_dataframes_as_tuples", "groupby", "_dataframes_filter", "map", "to_datapipe",
                 "shuffle", "concat", "batch", "_dataframes_per_row", "_dataframes_concat",
                 "_dataframes_shuffle"]  # fmt: skip


class CaptureControl:
    """Whether calls are captured."""

    disabled = False


def disable_capture() -> None:
    """Capture nothing from here on: what was captured raises RuntimeError where it is used."""
    CaptureControl.disabled = True


def _new_context(schema_df: Any = None) -> Dict[str, Any]:
    return {"operations": [], "variables": [], "schema_df": schema_df, "frame": None}


def get_val(capture: Any) -> Any:
    """A capture as text; another value as it is, a text in quotes."""
    if isinstance(capture, Capture):
        return str(capture)
    return f'"{capture}"' if isinstance(capture, str) else capture


def _executed(value: Any) -> Any:
    return value.execute() if isinstance(value, Capture) else value


class Capture:
    """Base of what is captured: execute() computes it for the table of its context."""

    def __init__(self, schema_df: Any = None) -> None:
        self._ctx: Dict[str, Any] = _new_context(schema_df)

    def _captured(self, made: "Capture") -> "CaptureVariable":
        if CaptureControl.disabled:
            raise RuntimeError("capture: expected it to be on, got a use behind disable_capture()")
        variable = CaptureVariable(made, self._ctx)
        self._ctx["operations"].append(CaptureVariableAssign(variable=variable, value=made))
        return variable

    # Without it Python would ask for items 0, 1, 2 and so on without end.
    __iter__: Any = None

    def execute(self) -> Any:
        """The value."""
        raise NotImplementedError(f"{type(self).__name__}: expected execute() to be defined")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "kwargs":
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return self._captured(CaptureGetAttr(self, name, self._ctx))

    def __getitem__(self, key: Any) -> "CaptureVariable":
        return self._captured(CaptureGetItem(self, key, self._ctx))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._ctx["operations"].append(CaptureSetItem(self, key, value, self._ctx))

    def __add__(self, other: Any) -> "CaptureVariable":
        return self._captured(CaptureAdd(self, other, self._ctx))

    def __sub__(self, other: Any) -> "CaptureVariable":
        return self._captured(CaptureSub(self, other, self._ctx))

    def __mul__(self, other: Any) -> "CaptureVariable":
        return self._captured(CaptureMul(self, other, self._ctx))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._captured(CaptureCall(self, ctx=self._ctx, args=args, kwargs=kwargs))

    def ops_str(self) -> str:
        """All operations, one a line."""
        return "\n".join(map(str, self._ctx["operations"]))

    def apply_ops_2(self, dataframe: Any) -> None:
        """Do all that was captured with a table, in place."""
        self._ctx["frame"] = dataframe
        for operation in self._ctx["operations"]:
            operation.execute()

    def apply_ops(self, dataframe: Any) -> Any:
        """The same; returns the table."""
        self.apply_ops_2(dataframe)
        return self._ctx["frame"]

    @property
    def columns(self) -> Any:
        """The columns that the example has once all is done with a copy of it."""
        if self._ctx["schema_df"] is None:
            raise RuntimeError("columns: expected a schema_df, got none")
        return self.apply_ops(copy.copy(self._ctx["schema_df"])).columns

    def __getstate__(self) -> Dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)


class CaptureF(Capture):
    """Base of what has arguments by name."""

    def __init__(self, ctx: Optional[Dict[str, Any]] = None, **kwargs: Any) -> None:
        self._ctx = _new_context() if ctx is None else ctx
        self.kwargs = kwargs


class CaptureA(CaptureF):
    """A function of a module, under its name."""

    def __str__(self) -> str:
        return str(self.kwargs["name"])

    def execute(self) -> Any:
        """The function."""
        return self.kwargs["real_attribute"]


class CaptureLikeMock:
    """A block in which the function "module.name" captures its calls."""

    def __init__(self, name: str) -> None:
        module, _, self.attribute = name.rpartition(".")
        self.target, self.name = importlib.import_module(module), name
        self.save = getattr(self.target, self.attribute)

    def __enter__(self) -> None:
        """The function is replaced."""
        setattr(self.target, self.attribute, CaptureA(name=self.name, real_attribute=self.save))

    def __exit__(self, *error: Any) -> None:
        setattr(self.target, self.attribute, self.save)


class CaptureCall(Capture):
    """A call."""

    def __init__(
        self,
        callable: Any,
        ctx: Any = None,
        args: Any = (),
        kwargs: Any = None,  # noqa: A002
    ) -> None:
        self._ctx = _new_context() if ctx is None else ctx
        self._function, self._arguments, self._named = callable, args, kwargs or {}

    def __str__(self) -> str:
        given = [str(get_val(a)) for a in self._arguments]
        given += [f"{name}={get_val(value)}" for name, value in self._named.items()]
        return f"{self._function}({', '.join(given)})"

    def execute(self) -> Any:
        """The result of the call."""
        named = {name: _executed(value) for name, value in self._named.items()}
        return _executed(self._function)(*map(_executed, self._arguments), **named)


class CaptureVariableAssign(CaptureF):
    """A value that is kept under a name."""

    def __str__(self) -> str:
        return f"{self.kwargs['variable']} = {self.kwargs['value']}"

    def execute(self) -> None:
        """Compute it."""
        self.kwargs["variable"]._calculated = self.kwargs["value"].execute()


class CaptureVariable(Capture):
    """A value under a name."""

    def __init__(self, value: Any, ctx: Dict[str, Any]) -> None:
        if CaptureControl.disabled:
            raise RuntimeError("capture: expected it to be on, got a use behind disable_capture()")
        self._ctx, self._value, self._calculated = ctx, value, None
        self._name = f"var_{len(ctx['variables'])}"
        ctx["variables"].append(self)

    def __str__(self) -> str:
        return self._name

    def execute(self) -> Any:
        """The computed value."""
        return self._calculated

    def apply_ops(self, dataframe: Any) -> Any:
        """This value, for a table."""
        self.apply_ops_2(dataframe)
        return self._calculated


class CaptureGetItem(Capture):
    """An item."""

    def __init__(self, left: Any, key: Any, ctx: Dict[str, Any]) -> None:
        self._ctx, self._left, self._key = ctx, left, key

    def __str__(self) -> str:
        return f"{self._left}[{get_val(self._key)}]"

    def execute(self) -> Any:
        """The item."""
        return self._left.execute()[_executed(self._key)]


class CaptureSetItem(Capture):
    """An item that is set."""

    def __init__(self, left: Any, key: Any, value: Any, ctx: Dict[str, Any]) -> None:
        self._ctx, self._left, self._key, self._value = ctx, left, key, value

    def __str__(self) -> str:
        return f"{self._left}[{get_val(self._key)}] = {get_val(self._value)}"

    def execute(self) -> None:
        """Set it."""
        self._left.execute()[_executed(self._key)] = _executed(self._value)


class _CaptureTwo(Capture):
    _sign = ""

    def __init__(self, left: Any, right: Any, ctx: Dict[str, Any]) -> None:
        self._ctx, self._left, self._right = ctx, left, right

    def __str__(self) -> str:
        return f"{self._left} {self._sign} {get_val(self._right)}"


class CaptureAdd(_CaptureTwo):
    """A sum."""

    _sign = "+"

    def execute(self) -> Any:
        """The sum."""
        return _executed(self._left) + _executed(self._right)


class CaptureSub(_CaptureTwo):
    """A difference."""

    _sign = "-"

    def execute(self) -> Any:
        """The difference."""
        return _executed(self._left) - _executed(self._right)


class CaptureMul(_CaptureTwo):
    """A product."""

    _sign = "*"

    def execute(self) -> Any:
        """The product."""
        return _executed(self._left) * _executed(self._right)


class CaptureGetAttr(Capture):
    """An attribute."""

    def __init__(self, src: Any, name: str, ctx: Dict[str, Any]) -> None:
        self._ctx, self._src, self._attribute = ctx, src, name

    def __str__(self) -> str:
        return f"{self._src}.{self._attribute}"

    def execute(self) -> Any:
        """The attribute."""
        return getattr(_executed(self._src), self._attribute)


class CaptureInitial(CaptureVariable):
    """The table itself."""

    def __init__(self, schema_df: Any = None) -> None:
        super().__init__(None, _new_context(schema_df))
        self._name = f"input_{self._name}"

    def execute(self) -> Any:
        """The table."""
        return self._ctx["frame"]

    def apply_ops(self, dataframe: Any) -> Any:
        """The table, once all is done with it."""
        self.apply_ops_2(dataframe)
        return self._ctx["frame"]


class CaptureDataFrame(CaptureInitial):
    """A table of which an example is known, or none."""


class CaptureDataFrameWithDataPipeOps(CaptureDataFrame):
    """A table that is a pipe, too: the methods of pipes are those of the tables that come."""

    def as_datapipe(self) -> Any:
        """The pipe of the tables, with all done that was captured."""
        return DataFrameTracedOps(self._source, self)

    def raw_iterator(self) -> Iterator[Any]:
        """The tables."""
        yield from self.as_datapipe()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dataframes_as_tuples())

    def batch(
        self, batch_size: int = 10, drop_last: bool = False, wrapper_class: Any = None
    ) -> Any:
        """Batches of tables of one row each, whose samples are rows."""
        rows = self.as_datapipe()._dataframes_per_row()
        batches = rows._dataframes_concat(batch_size)
        kind = DataChunkDF if wrapper_class is None else wrapper_class
        return batches.batch(1, drop_last=drop_last, wrapper_class=kind)

    def groupby(self, group_key_fn: Any, **settings: Any) -> Any:
        """Groups of rows."""
        return self._dataframes_as_tuples().groupby(group_key_fn, **settings)

    def shuffle(self, **settings: Any) -> Any:
        """The rows in a random order."""
        return self.as_datapipe()._dataframes_shuffle(**settings)

    def filter(self, filter_fn: Any) -> Any:
        """Tables of the rows that fulfil a condition."""
        return self.as_datapipe()._dataframes_filter(filter_fn)

    def collate(self, *args: Any, **kwargs: Any) -> Any:
        """RuntimeError: batches of rows are collated."""
        raise RuntimeError("collate: expected batch() before it, got unbatched tables")

    def __getattr__(self, name: str) -> Any:
        if name in DATAPIPES_OPS:
            return getattr(self.as_datapipe(), name)
        return super().__getattr__(name)


class DataFrameTracedOps(DFIterDataPipe):
    """The tables of a pipe, with all done that was captured; a captured value in place of the
    table where it is one."""

    def __init__(self, source_datapipe: Any, output_var: Any) -> None:
        self.source_datapipe, self.output_var = source_datapipe, output_var

    def __iter__(self) -> Iterator[Any]:
        for frame in self.source_datapipe:
            yield self.output_var.apply_ops(frame)


@functional_datapipe("trace_as_dataframe")
class DataFrameTracer(CaptureDataFrameWithDataPipeOps, DFIterDataPipe):  # type: ignore[misc]
    """A pipe of tables as a table: what is done with it is done with each."""

    def __init__(self, source_datapipe: Any, schema_df: Any = None) -> None:
        self._source = source_datapipe
        CaptureDataFrameWithDataPipeOps.__init__(self, schema_df=schema_df)

    def set_shuffle_settings(self, *args: Any, **kwargs: Any) -> None:
        """Nothing to set: the tables come in the order of their pipe."""

    def is_shardable(self) -> bool:
        """Whether it may be split: it may not."""
        return False


__all__ = [
    "CaptureA", "CaptureAdd", "CaptureCall", "CaptureControl", "CaptureDataFrame",
    "CaptureDataFrameWithDataPipeOps", "CaptureF", "CaptureGetAttr", "CaptureGetItem",
    "CaptureInitial", "CaptureLikeMock", "CaptureMul", "CaptureSetItem", "CaptureSub",
    "CaptureVariable", "CaptureVariableAssign", "Capture", "DataFrameTracedOps", "DataFrameTracer",
    "disable_capture", "get_val",
]  # fmt: skip
