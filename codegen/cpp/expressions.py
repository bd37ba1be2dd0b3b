"""Expressions of entries in C++. They mean different things by their place:

    check        stride > 0      contract::gt(stride, 0)       for every entry of a list
    pointwise    x > 0 ? x : 0   where(x > constant<V>(0), x, constant<V>(0))
    shape        same_as(self)   the arguments are C++ as they are

A `Translator` is C++ as it is; the others say what is different. That of formulas is in
codegen/gradients.
"""

# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Iterable

from ..model import expr
from ..model.expr import Expr, Visitor, walk
from . import code
from .defaults import INFINITY, NAN, PI, dtype
from .names import cpp_name

_CONSTANTS = {"inf": INFINITY, "nan": NAN, "pi": PI}
_COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


class Translator(Visitor[code.Expr]):
    """C++ as it is."""

    def each(self, nodes: Iterable[Expr]) -> tuple[code.Expr, ...]:
        return tuple(self.visit(node) for node in nodes)

    def name(self, node: expr.Name) -> code.Expr:
        return code.Id(cpp_name(node.text))

    def constant(self, node: expr.Constant) -> code.Expr:
        return _CONSTANTS[node.text]

    def dtype(self, node: expr.DtypeName) -> code.Expr:
        return dtype(node.dtype)

    def number(self, node: expr.Number) -> code.Expr:
        return code.Literal(node.text)

    def boolean(self, node: expr.Bool) -> code.Expr:
        return code.TRUE if node.value else code.FALSE

    def string(self, node: expr.String) -> code.Expr:
        return code.Text(node.value)

    def nothing(self, node: expr.Nothing) -> code.Expr:
        return code.NULLOPT

    def call(self, node: expr.Call) -> code.Expr:
        return code.Call(node.function, self.each(node.arguments))

    def method(self, node: expr.Method) -> code.Expr:
        return code.MethodCall(self.visit(node.on), node.name, self.each(node.arguments))

    def index(self, node: expr.Index) -> code.Expr:
        return code.Subscript(self.visit(node.on), self.visit(node.index))

    def unary(self, node: expr.Unary) -> code.Expr:
        return code.Prefix(node.operator, self.visit(node.operand))

    def binary(self, node: expr.Binary) -> code.Expr:
        return code.Infix(node.operator, self.visit(node.left), self.visit(node.right))

    def ternary(self, node: expr.Ternary) -> code.Expr:
        return code.Ternary(*self.each(node.children))

    def items(self, node: expr.Items) -> code.Expr:
        return code.Braces(self.each(node.items))


class AsWritten(Translator):
    """The text of an entry, for messages and pages."""

    def name(self, node: expr.Name) -> code.Expr:
        return code.Id(node.text)

    def constant(self, node: expr.Constant) -> code.Expr:
        return code.Id(node.text)

    def dtype(self, node: expr.DtypeName) -> code.Expr:
        return code.Id(node.dtype.name)

    def nothing(self, node: expr.Nothing) -> code.Expr:
        return code.Id("None")


class Contract(Translator):
    """A condition of `check`: comparisons hold over lists and optionals as well."""

    def call(self, node: expr.Call) -> code.Expr:
        if node.function == "message":
            return self.visit(node.arguments[0])
        if node.function != "one_of":
            return super().call(node)
        subject, *texts = self.each(node.arguments)
        return code.Call("contract::one_of", (subject, code.Braces(tuple(texts))))

    def binary(self, node: expr.Binary) -> code.Expr:
        if node.operator not in _COMPARISONS:
            return super().binary(node)
        function = f"contract::{_COMPARISONS[node.operator]}"
        return code.Call(function, self.each(node.children))


class Element(Translator):
    """One element, or one vector of them: numbers become constants of the element type V."""

    def __init__(self, whole: Expr):
        calls = {node.callee.function for node in walk(whole) if node.callee is not None}
        self._taken = calls | {"V", "constant"}

    def variable(self, name: str) -> str:
        """The name of a value, which hides no function that the expression calls."""
        variable = cpp_name(name)
        return f"{variable}_" if variable in self._taken else variable

    def name(self, node: expr.Name) -> code.Expr:
        return code.Id(self.variable(node.text))

    def _constant(self, value: code.Expr) -> code.Expr:
        return code.Call("constant<V>", (value,))

    def constant(self, node: expr.Constant) -> code.Expr:
        return self._constant(super().constant(node))

    def dtype(self, node: expr.DtypeName) -> code.Expr:
        return self._constant(super().dtype(node))

    def number(self, node: expr.Number) -> code.Expr:
        return self._constant(super().number(node))

    def boolean(self, node: expr.Bool) -> code.Expr:
        return self._constant(code.Literal("1" if node.value else "0"))

    def visit(self, node: Expr) -> code.Expr:
        # Operators and choices have one, too, where vectors have none of their own.
        if node.callee is not None:
            return code.Call(node.callee.function, self.each(node.children))
        return super().visit(node)


def translated(node: Expr) -> code.Expr:
    return Translator().visit(node)


def element(node: Expr) -> code.Expr:
    return Element(node).visit(node)


def as_written(node: Expr) -> code.Expr:
    return AsWritten().visit(node)
