"""A small model of C++: types, expressions with their precedence, statements. `str` prints them.

    str(Infix("*", Infix("+", Id("a"), Id("b")), Id("c")))    (a + b) * c
    str(Prefix("-", Prefix("-", Id("x"))))                    -(-x)

Generated code is put together of these and printed once; no text of C++ is read or edited.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Iterable, Optional, Union

# How tightly the operators bind.
_TERNARY, _PREFIX, _POSTFIX, _PRIMARY = 0, 8, 9, 10
_INFIX = {
    "||": 1, "&&": 2, "|": 3, "==": 4, "!=": 4, "<": 5, "<=": 5, ">": 5, ">=": 5,
    "+": 6, "-": 6, "*": 7, "/": 7, "%": 7,
}  # fmt: skip


def quoted(text: str) -> str:
    """The text as a literal of C++."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# ---- types ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Type:
    value: str  # std::optional<Scalar>
    by_reference: bool = False  # passed as `const value&`

    def __str__(self) -> str:
        return f"const {self.value}&" if self.by_reference else self.value

    @property
    def by_value(self) -> Type:
        return Type(self.value)


def optional(type_: Type) -> Type:
    return Type(f"std::optional<{type_.value}>", type_.by_reference)


def tuple_of(types: Iterable[Type]) -> Type:
    return Type(f"std::tuple<{', '.join(map(str, types))}>")


def array_of(type_: Type, count: int) -> Type:
    return Type(f"std::array<{type_}, {count}>")


VOID = Type("void")


# ---- expressions ---------------------------------------------------------------------------------


class Expr(ABC):
    @property
    def precedence(self) -> int:
        return _PRIMARY

    @abstractmethod
    def __str__(self) -> str: ...

    def within(self, precedence: int) -> str:
        """The text where the surrounding binds that tightly."""
        return f"({self})" if self.precedence < precedence else str(self)


@dataclass(frozen=True)
class Id(Expr):
    """A name, or a path of names."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Literal(Expr):
    """A number that is not negative, or a word such as nullptr."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Text(Expr):
    value: str

    def __str__(self) -> str:
        return quoted(self.value)


@dataclass(frozen=True)
class Call(Expr):
    """`function(arguments)`; the function may be a path or have template arguments."""

    function: str
    arguments: tuple[Expr, ...]

    @property
    def precedence(self) -> int:
        return _POSTFIX

    def __str__(self) -> str:
        return f"{self.function}({listed(self.arguments)})"


@dataclass(frozen=True)
class Member(Expr):
    """`on.name`, or `on->name` of a pointer."""

    on: Expr
    name: str
    of_pointer: bool = False

    @property
    def precedence(self) -> int:
        return _POSTFIX

    def __str__(self) -> str:
        return f"{self.on.within(_POSTFIX)}{'->' if self.of_pointer else '.'}{self.name}"


@dataclass(frozen=True)
class MethodCall(Expr):
    """`on.name(arguments)`, or `on->name(arguments)` of a pointer."""

    on: Expr
    name: str
    arguments: tuple[Expr, ...] = ()
    of_pointer: bool = False

    @property
    def precedence(self) -> int:
        return _POSTFIX

    def __str__(self) -> str:
        return f"{Member(self.on, self.name, self.of_pointer)}({listed(self.arguments)})"


@dataclass(frozen=True)
class Subscript(Expr):
    on: Expr
    index: Expr

    @property
    def precedence(self) -> int:
        return _POSTFIX

    def __str__(self) -> str:
        return f"{self.on.within(_POSTFIX)}[{self.index}]"


@dataclass(frozen=True)
class Prefix(Expr):
    operator: str  # - ! & *
    operand: Expr

    @property
    def precedence(self) -> int:
        return _PREFIX

    def __str__(self) -> str:
        # `--x` and `&&x` are other operators of C++.
        apart = isinstance(self.operand, Prefix) and self.operand.operator in ("-", "&")
        return f"{self.operator}{self.operand.within(_POSTFIX if apart else _PREFIX)}"


@dataclass(frozen=True)
class Group(Expr):
    """Parentheses where none are needed, for the reader."""

    inner: Expr

    def __str__(self) -> str:
        return f"({self.inner})"


@dataclass(frozen=True)
class Infix(Expr):
    operator: str
    left: Expr
    right: Expr

    @property
    def precedence(self) -> int:
        return _INFIX[self.operator]

    def __str__(self) -> str:
        mine = self.precedence
        return f"{self.left.within(mine)} {self.operator} {self.right.within(mine + 1)}"


@dataclass(frozen=True)
class Ternary(Expr):
    condition: Expr
    then: Expr
    otherwise: Expr

    @property
    def precedence(self) -> int:
        return _TERNARY

    def __str__(self) -> str:
        above = _TERNARY + 1
        return f"{self.condition.within(above)} ? {self.then.within(above)} : {self.otherwise}"


@dataclass(frozen=True)
class Braces(Expr):
    """`{a, b}`."""

    items: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"{{{listed(self.items)}}}"


@dataclass(frozen=True)
class Construct(Expr):
    """`type{a, b}`."""

    type: str
    items: tuple[Expr, ...]

    def __str__(self) -> str:
        return f"{self.type}{{{listed(self.items)}}}"


def listed(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


def integer(value: int) -> Expr:
    return Prefix("-", Literal(str(-value))) if value < 0 else Literal(str(value))


def joined(operator: str, operands: Iterable[Expr]) -> Expr:
    """`a || b || c`."""
    first, *others = operands
    result: Expr = first
    for other in others:
        result = Infix(operator, result, other)
    return result


NULLOPT = Literal("std::nullopt")
NULLPTR = Literal("nullptr")
EMPTY = Braces(())
TRUE, FALSE = Literal("true"), Literal("false")


# ---- declarations --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Param:
    type: Type
    name: str  # "" where it has none
    default: Optional[Expr] = None

    def __str__(self) -> str:
        named = f"{self.type} {self.name}" if self.name else str(self.type)
        return f"{named} = {self.default}" if self.default else named


@dataclass(frozen=True)
class Function:
    """The declaration of a function in a namespace."""

    namespace: str
    result: Type
    name: str
    params: tuple[Param, ...]

    def __str__(self) -> str:
        return f"{self.result} {self.name}({listed(self.params)})"


# ---- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evaluate:
    expr: Expr

    def __str__(self) -> str:
        return f"{self.expr};"


@dataclass(frozen=True)
class Assign:
    to: Expr
    value: Expr

    def __str__(self) -> str:
        return f"{self.to} = {self.value};"


@dataclass(frozen=True)
class Declare:
    """`const Tensor x = value;`."""

    type: str
    name: str
    value: Expr

    def __str__(self) -> str:
        return f"{self.type} {self.name} = {self.value};"


@dataclass(frozen=True)
class Throw:
    value: Expr

    def __str__(self) -> str:
        return f"throw {self.value};"


@dataclass(frozen=True)
class If:
    condition: Expr
    then: Statement
    unlikely: bool = False

    def __str__(self) -> str:
        return f"if ({self.condition}) {'[[unlikely]] ' if self.unlikely else ''}{self.then}"


Statement = Union[Evaluate, Assign, Declare, Throw, If]
