"""Schemas: the types, arguments and results of an operator and of each of its forms.

Example:

    add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    add.Tensor_out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Union

from .dtypes import Dtype
from .words import Word


class FormKind(Word):
    FUNCTIONAL = "functional"
    INPLACE = "inplace"
    OUT = "out"

    @property
    def enumerator(self) -> str:
        return "InPlace" if self is FormKind.INPLACE else super().enumerator


class DefaultKind(Word):
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    STRING = "string"
    NONE = "none"
    LIST = "list"
    NAME = "name"  # a constant, such as contiguous_format, Mean or float32


@dataclass(frozen=True)
class Alias:
    """`(a!)`: memory in the set `a`, written."""

    before: tuple[str, ...]
    write: bool
    after: tuple[str, ...]


@dataclass(frozen=True)
class Type:
    text: str  # as schemas write it
    base: str  # "Tensor", "int", "Scalar", ...
    optional: bool
    list: bool
    list_size: Optional[int]
    element_optional: bool
    alias: Optional[Alias]

    @property
    def is_tensor(self) -> bool:
        return self.base == "Tensor" and not self.list

    @property
    def is_tensor_list(self) -> bool:
        return self.base == "Tensor" and self.list

    @property
    def holds_tensors(self) -> bool:
        return self.base == "Tensor"

    @property
    def is_sizes(self) -> bool:
        """Whether it is a list of integers."""
        return self.list and self.base in ("int", "SymInt")

    @property
    def writes(self) -> bool:
        return self.alias is not None and self.alias.write


# A NAME is its text, or the dtype with that name.
Value = Union[None, bool, int, float, str, Dtype, tuple["Value", ...]]


@dataclass(frozen=True)
class Default:
    kind: DefaultKind
    text: str  # as written: 1e-05 stays 1e-05
    value: Value


@dataclass(frozen=True)
class Arg:
    name: str
    type: Type
    default: Optional[Default]
    kwarg_only: bool

    @property
    def is_self(self) -> bool:
        return self.name == "self" and self.type.is_tensor


@dataclass(frozen=True)
class Return:
    name: Optional[str]
    type: Type


@dataclass(frozen=True)
class Form:
    """One of the signatures that an entry has."""

    form: FormKind
    name: str
    overload: str
    id: str  # add_Tensor_out
    schema: str
    args: tuple[Arg, ...]
    returns: tuple[Return, ...]

    @property
    def operator(self) -> str:
        """`add_.Tensor`."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def function(self) -> str:
        """Its C++ function; the overloads of one name are told apart by their parameters."""
        return f"{self.name}_out" if self.is_out else self.name

    @property
    def returns_tensor(self) -> bool:
        """Whether it returns one tensor."""
        return len(self.returns) == 1 and self.returns[0].type.is_tensor

    @property
    def is_functional(self) -> bool:
        return self.form is FormKind.FUNCTIONAL

    @property
    def is_inplace(self) -> bool:
        return self.form is FormKind.INPLACE

    @property
    def is_out(self) -> bool:
        return self.form is FormKind.OUT
