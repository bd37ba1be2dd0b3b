"""Schemas as objects: what an operator takes and gives, for programs that ask.

>>> treadle.ops.aten.add.Tensor._schema
aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional, Set, Tuple

from treadle import _C


@dataclass(frozen=True)
class AliasInfo:
    """The memory that an argument or result shares: the sets before and after the call."""

    is_write: bool
    before_set: Set[str]
    after_set: Set[str]


@dataclass(frozen=True)
class Argument:
    """One argument or result. `type` is as the schema writes it: "Tensor?[]"."""

    name: str
    type: str
    alias_info: Optional[AliasInfo] = None
    default_value: Any = None
    kwarg_only: bool = False
    _has_default: bool = field(default=False, repr=False)

    def has_default_value(self) -> bool:
        """Whether it may be left out."""
        return self._has_default

    @property
    def is_write(self) -> bool:
        """Whether the operator writes to it."""
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        """Whether it is where results go."""
        return self.kwarg_only and self.is_write


@dataclass(frozen=True)
class FunctionSchema:
    """The arguments and results of an operator. `name` has the namespace: "aten::add"."""

    name: str
    overload_name: str
    arguments: Tuple[Argument, ...]
    returns: Tuple[Argument, ...]
    _text: str = field(repr=False)

    @property
    def is_mutable(self) -> bool:
        """Whether it writes to an argument."""
        return any(a.is_write for a in self.arguments)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


def _alias(parts: Any) -> Optional[AliasInfo]:
    if parts is None:
        return None
    write, before, after = parts
    return AliasInfo(write, set(before), set(after))


def schema_of(name: str) -> FunctionSchema:
    """The schema of the operator with this full name; RuntimeError for an unknown one."""
    ns, base, overload, arguments, returns, text, defined = _C._library_schema(name)
    return FunctionSchema(
        f"{ns}::{base}",
        overload,
        tuple(
            Argument(a_name, kind, _alias(alias), default, keyword, has_default)
            for a_name, kind, has_default, default, keyword, alias in arguments
        ),
        tuple(Argument(r_name, kind, _alias(alias)) for r_name, kind, alias in returns),
        text if defined or "::" in text.split("(")[0] else f"{ns}::{text}",
    )
