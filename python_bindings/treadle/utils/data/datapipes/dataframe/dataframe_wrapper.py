"""How the pipes of tables handle a table: by pandas, unless set_df_wrapper() gives another."""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any, Iterable, List, Optional


class PandasWrapper:
    """The functions of this module, for pandas."""

    @classmethod
    def _pandas(cls) -> Any:
        try:
            import pandas
        except ImportError as error:
            raise RuntimeError("dataframe: expected the package pandas, got none") from error
        return pandas

    @classmethod
    def create_dataframe(cls, data: Any, columns: Optional[List[str]] = None) -> Any:
        return cls._pandas().DataFrame(data, columns=columns)

    @classmethod
    def is_dataframe(cls, data: Any) -> bool:
        return isinstance(data, cls._pandas().DataFrame)

    @classmethod
    def is_column(cls, data: Any) -> bool:
        return isinstance(data, cls._pandas().Series)

    @classmethod
    def iterate(cls, data: Any) -> Iterable[Any]:
        return data.itertuples(index=False)

    @classmethod
    def concat(cls, buffer: List[Any]) -> Any:
        return cls._pandas().concat(buffer)

    @classmethod
    def get_item(cls, data: Any, idx: int) -> Any:
        return data[idx : idx + 1]

    @classmethod
    def get_len(cls, df: Any) -> int:
        return len(df.index)

    @classmethod
    def get_columns(cls, df: Any) -> List[Any]:
        return list(df.columns.values.tolist())


_wrapper: Any = PandasWrapper


def get_df_wrapper() -> Any:
    """The object that handles tables."""
    return _wrapper


def set_df_wrapper(wrapper: Any) -> None:
    """Handle tables by another object, with the functions of this module as its methods."""
    global _wrapper
    _wrapper = wrapper


def create_dataframe(data: Any, columns: Optional[List[str]] = None) -> Any:
    """A table of rows."""
    return _wrapper.create_dataframe(data, columns)


def is_dataframe(data: Any) -> bool:
    """Whether it is a table."""
    return _wrapper.is_dataframe(data)


def is_column(data: Any) -> bool:
    """Whether it is a column of a table."""
    return _wrapper.is_column(data)


def get_columns(data: Any) -> List[Any]:
    """The names of the columns."""
    return _wrapper.get_columns(data)


def concat(buffer: List[Any]) -> Any:
    """Tables below each other."""
    return _wrapper.concat(buffer)


def iterate(data: Any) -> Iterable[Any]:
    """The rows, as tuples."""
    return _wrapper.iterate(data)


def get_item(data: Any, idx: int) -> Any:
    """One row, as a table."""
    return _wrapper.get_item(data, idx)


def get_len(df: Any) -> int:
    """How many rows there are."""
    return _wrapper.get_len(df)
