"""Expressions of entries and formulas: the tree that schemac parsed, as frozen dataclasses.

A walk over a tree is a `Visitor`, with a method for each class of node. `walk` yields the nodes
where their classes do not matter:

    {node.text for node in walk(expr) if isinstance(node, Name)}
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Generic, Iterator, Optional, TypeVar

from .dtypes import Dtype
from .words import Word

T = TypeVar("T")


class CalleeKind(Word):
    OPERATOR = "operator"  # of the model, or of the model that a library stands on
    HELPER = "helper"  # declared in formulas.yaml
    METHOD = "method"  # of a tensor, a list or a number
    SCALAR = "scalar"  # a function of elements
    CONDITION = "condition"  # any, message, one_of
    SHAPE = "shape"  # a shape rule
    WORD = "word"  # not_implemented


@dataclass(frozen=True)
class Callee:
    """To which function a call goes."""

    kind: CalleeKind
    namespace: str  # of an operator or a helper, else ""
    function: str  # its name in C++
    name: str  # and with the overload, as in `add.Tensor`
    entry: str  # of an operator: the base name of its entry


@dataclass(frozen=True)
class Expr(ABC):
    type: str = field(default="", kw_only=True, compare=False)  # of its value: "Tensor", "int[]"
    # The function of a call or a method, and of an operator on elements that is one in C++.
    callee: Optional[Callee] = field(default=None, kw_only=True, compare=False)

    @property
    def children(self) -> tuple[Expr, ...]:
        return ()

    @abstractmethod
    def accept(self, visitor: Visitor[T]) -> T:
        """The visitor's method for this class of node, called with the node."""


@dataclass(frozen=True)
class Name(Expr):
    text: str

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.name(self)


@dataclass(frozen=True)
class Constant(Expr):
    """A number with a name: `inf`, `nan`, `pi`."""

    text: str

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.constant(self)


@dataclass(frozen=True)
class DtypeName(Expr):
    dtype: Dtype

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.dtype(self)


@dataclass(frozen=True)
class Number(Expr):
    text: str  # as written: 1e-05 stays 1e-05
    is_integer: bool

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.number(self)


@dataclass(frozen=True)
class Bool(Expr):
    value: bool

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.boolean(self)


@dataclass(frozen=True)
class String(Expr):
    value: str

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.string(self)


@dataclass(frozen=True)
class Nothing(Expr):
    """`None`."""

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.nothing(self)


@dataclass(frozen=True)
class Call(Expr):
    function: str
    arguments: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.arguments

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.call(self)


@dataclass(frozen=True)
class Method(Expr):
    """`on.name(arguments)`."""

    on: Expr
    name: str
    arguments: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.on, *self.arguments)

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.method(self)


@dataclass(frozen=True)
class Index(Expr):
    """`on[index]`."""

    on: Expr
    index: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.on, self.index)

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.index(self)


@dataclass(frozen=True)
class Unary(Expr):
    operator: str  # - !
    operand: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.operand,)

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.unary(self)


@dataclass(frozen=True)
class Binary(Expr):
    operator: str  # + - * / %, comparisons, && ||
    left: Expr
    right: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.left, self.right)

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.binary(self)


@dataclass(frozen=True)
class Ternary(Expr):
    """`condition ? then : otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr

    @property
    def children(self) -> tuple[Expr, ...]:
        return (self.condition, self.then, self.otherwise)

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.ternary(self)


@dataclass(frozen=True)
class Items(Expr):
    """A list: `{self, other}`."""

    items: tuple[Expr, ...]

    @property
    def children(self) -> tuple[Expr, ...]:
        return self.items

    def accept(self, visitor: Visitor[T]) -> T:
        return visitor.items(self)


class Visitor(ABC, Generic[T]):
    """The result of a walk for each class of node."""

    def visit(self, node: Expr) -> T:
        return node.accept(self)

    @abstractmethod
    def name(self, node: Name) -> T: ...
    @abstractmethod
    def constant(self, node: Constant) -> T: ...
    @abstractmethod
    def dtype(self, node: DtypeName) -> T: ...
    @abstractmethod
    def number(self, node: Number) -> T: ...
    @abstractmethod
    def boolean(self, node: Bool) -> T: ...
    @abstractmethod
    def string(self, node: String) -> T: ...
    @abstractmethod
    def nothing(self, node: Nothing) -> T: ...
    @abstractmethod
    def call(self, node: Call) -> T: ...
    @abstractmethod
    def method(self, node: Method) -> T: ...
    @abstractmethod
    def index(self, node: Index) -> T: ...
    @abstractmethod
    def unary(self, node: Unary) -> T: ...
    @abstractmethod
    def binary(self, node: Binary) -> T: ...
    @abstractmethod
    def ternary(self, node: Ternary) -> T: ...
    @abstractmethod
    def items(self, node: Items) -> T: ...


def walk(expr: Expr) -> Iterator[Expr]:
    """The nodes of an expression, the root first."""
    yield expr
    for child in expr.children:
        yield from walk(child)
